//! Every example of the specification, executed.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use plaincall_call::{Document, ToolSet, ToolSpec};
use plaincall_syntax::{Call, RenderError, escape, near_misses, render, unescape};
use plaincall_testkit::examples::{self, Example, Operation};
use plaincall_testkit::{merged, split};
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

#[test]
fn chunking_does_not_matter() {
    let mut count = 0;
    for example in examples::all(FILES) {
        if example.operation == Operation::Read {
            count += split::check(&example.input, &example.dialect, 1000);
        }
    }
    println!("{count} ways to cut the examples");
}

/// Every key that the example writes is equal; after an error there are no parameters.
fn agrees(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| agrees(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            let has_error = expected.contains_key("parseError");
            (!has_error || !found.contains_key("parameters"))
                && expected
                    .iter()
                    .all(|(key, value)| found.get(key) == Some(value))
        }
        _ => false,
    }
}

#[test]
fn calls_are_as_specified() {
    let mut failures = Vec::new();
    let mut count = 0;
    for example in examples::all(FILES) {
        let Some(expected) = example
            .expectation("json")
            .filter(|_| example.operation == Operation::Read)
        else {
            continue;
        };
        count += 1;
        let expected: Value = serde_json::from_str(expected)
            .unwrap_or_else(|error| panic!("{}: {error}", example.place));
        let document =
            Document::parse(&example.input, &example.dialect).expect("the dialect works");
        let found: Value = if let Some(schema) = example.expectation("schema") {
            read_by(&document, schema)
        } else {
            let document = serde_json::to_value(&document).expect("a document is always JSON");
            let segments = document["segments"].as_array().expect("segments");
            let calls = segments.iter().filter(|segment| segment["type"] == "call");
            calls.map(|segment| segment["call"].clone()).collect()
        };
        if !agrees(&expected, &found) {
            failures.push(format!(
                "{}:\n--- expected\n{expected:#}\n--- found\n{found:#}",
                example.place
            ));
        }
    }
    println!("{count} examples with calls");
    assert!(
        failures.is_empty(),
        "{}\n{} failures",
        failures.join("\n"),
        failures.len()
    );
    assert!(count > 50, "the examples were not found");
}

/// Each call as its wire form has it where the schema of its tool is known, and its `problems`.
fn read_by(document: &Document, schema: &str) -> Value {
    let schema = serde_json::from_str(schema).expect("a schema is JSON");
    let mut tools = ToolSet::default();
    for call in document.calls() {
        let tool = ToolSpec::new(call.name.as_str())
            .parameters_from_schema(&schema)
            .expect("a schema of an object");
        // Several calls may name one tool.
        let _ = tools.add(tool);
    }
    let bound = document.bind(&tools);
    let calls = bound.calls().iter().map(|call| {
        let mut wire = serde_json::to_value(call).expect("a call is always JSON");
        if let Err(problems) = &call.arguments {
            let messages = problems.iter().map(ToString::to_string);
            wire["problems"] = messages.collect::<Vec<_>>().into();
        }
        wire
    });
    calls.collect()
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
        let escaped = escape(&example.input, &example.dialect).expect("the dialect works");
        let back = unescape(&escaped, &example.dialect).expect("the dialect works");
        assert_eq!(back, example.input, "{}", example.place);
        escaped.into_owned()
    });
}

#[test]
fn near_misses_are_found_as_specified() {
    check(Operation::Near, "near", |example| {
        let found = near_misses(&example.input, &example.dialect).expect("the dialect works");
        let line = |near: &plaincall_syntax::NearMiss| {
            let written = &example.input[near.span.range()];
            format!("\"{written}\" -> \"{}\"", near.meant)
        };
        found.iter().map(line).collect::<Vec<_>>().join("\n")
    });
}
