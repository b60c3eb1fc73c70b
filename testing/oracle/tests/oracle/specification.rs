//! The examples of the specification: events, rendered calls, escaped texts and near misses.

use plaincall_oracle::conformance;
use plaincall_oracle::examples::{self, Example, Operation};
use plaincall_oracle::merged;
use plaincall_syntax::{Call, Escaper, NearMiss, RenderError, near_misses, render};
use serde_json::Value;

const FILES: &[&str] = &["common.md", "block.md", "emoji.md", "limits.md"];

#[test]
fn events_are_as_specified() {
    let mut failures = Vec::new();
    let mut count = 0;
    for example in examples::all(FILES) {
        let Some(expected) = example.expectation("events") else {
            continue;
        };
        count += 1;
        let merged = merged::merged(&example.input, &example.dialect)
            .unwrap_or_else(|error| panic!("{}: {error}", example.place));
        let found = examples::events_text(&merged, &example.input);
        if found != examples::normalized(expected) {
            failures.push(format!(
                "{}: {:?}\n--- expected\n{expected}\n--- found\n{found}\n",
                example.place, example.input
            ));
        }
    }
    println!("{count} examples with events");
    assert!(
        failures.is_empty(),
        "{}\n{} failures",
        failures.join("\n"),
        failures.len()
    );
    assert!(count > 100, "the examples were not found");
}

/// Runs every example of `operation` and compares what `run` gives with its expectation of this `name`.
fn check(operation: Operation, name: &str, run: impl Fn(&Example) -> String) {
    let mut failures = Vec::new();
    let mut count = 0;
    for example in examples::all(FILES) {
        if example.operation != operation {
            continue;
        }
        let Some(expected) = example.expectation(name) else {
            continue;
        };
        count += 1;
        let found = run(&example);
        let is_right = match name {
            // A word or phrase of the reason.
            "refused" => found.contains(expected),
            _ => found == expected,
        };
        if !is_right {
            failures.push(format!(
                "{}\n--- expected\n{expected}\n--- found\n{found}\n",
                example.place
            ));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
    assert!(count > 0, "no example has {name:?}");
}

fn rendered(example: &Example) -> Result<String, RenderError> {
    let value: Value = serde_json::from_str(&example.input).expect("JSON in a render example");
    let text = |key: &str| value.get(key).and_then(|text| text.as_str());
    let list = |key: &str| {
        value
            .get(key)
            .and_then(|list| list.as_array())
            .into_iter()
            .flatten()
    };
    let name = text("name").expect("a name");
    let call = match text("raw_args") {
        Some(raw_args) => Call::Emoji {
            name,
            raw_args,
            body: text("body").expect("a body"),
        },
        None => Call::Block {
            name,
            id: text("id"),
            dependencies: list("dependencies").filter_map(|id| id.as_str()).collect(),
            arguments: list("arguments")
                .filter_map(|pair| Some((pair.get(0)?.as_str()?, pair.get(1)?.as_str()?)))
                .collect(),
        },
    };
    render(&call, &example.dialect)
}

#[test]
fn calls_are_rendered_as_specified() {
    check(Operation::Render, "text", |example| {
        match rendered(example) {
            Ok(text) => text.strip_suffix('\n').unwrap_or(&text).to_owned(),
            Err(error) => format!("refused: {error}"),
        }
    });
    check(Operation::Render, "refused", |example| {
        match rendered(example) {
            Ok(text) => format!("it was rendered:\n{}", text.replace("marker", "")),
            Err(error) => error.to_string(),
        }
    });
}

#[test]
fn texts_are_escaped_as_specified() {
    check(Operation::Escape, "text", |example| {
        let escaper = Escaper::new(&example.dialect).expect("the dialect works");
        let written = escaper.escape(&example.input);
        let back = escaper.unescape(&written);
        assert_eq!(back, example.input, "{}", example.place);
        written.into_owned()
    });
}

#[test]
fn near_misses_are_found_as_specified() {
    check(Operation::Near, "near", |example| {
        let found = near_misses(&example.input, &example.dialect).expect("the dialect works");
        let line = |near: &NearMiss| {
            let written = &example.input[near.span.range()];
            format!("\"{written}\" -> \"{}\"", near.suggestion)
        };
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    });
}

/// `conformance/` holds the same examples. With `CONFORMANCE=overwrite` it is written anew.
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "an environment variable decides whether the files are written"
)]
fn the_exported_examples_are_up_to_date() {
    let folder = examples::folder().join("../conformance");
    let is_rewritten = std::env::var_os("CONFORMANCE").is_some_and(|word| word == "overwrite");
    for topic in conformance::TOPICS {
        let path = folder.join(format!("{topic}.json"));
        let text = conformance::file(topic);
        if is_rewritten {
            std::fs::write(&path, &text).expect("the folder is there");
        }
        let kept = std::fs::read_to_string(&path).expect("the file is there");
        assert!(
            kept == text,
            "CONFORMANCE=overwrite cargo test -p plaincall-oracle exported"
        );
    }
}
