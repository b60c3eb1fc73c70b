//! The examples of the specification as JSON, for the parsers of others (`conformance/`).

use serde_json::{Map, Value, json};

use crate::examples::{self, Example, Operation};

/// The version of the form of the files. It changes when an existing program could no longer read them.
pub const VERSION: u32 = 2;

/// The topics: the files of `spec/` whose examples are exported.
pub const TOPICS: [&str; 4] = ["common", "block", "emoji", "limits"];

/// Returns the text of `conformance/TOPIC.json`: one case on each line.
///
/// # Panics
/// If an example is not of the form that `spec/README.md` defines.
pub fn file(topic: &str) -> String {
    let mut section = String::new();
    let mut number = 0;
    let cases = examples::all(&[&format!("{topic}.md")]).into_iter();
    let cases: Vec<String> = cases
        .map(|example| {
            if section == example.section {
                number += 1;
            } else {
                section.clone_from(&example.section);
                number = 1;
            }
            case(&format!("{topic}/{section}/{number}"), &example).to_string()
        })
        .collect();
    format!(
        "{{\"version\":{VERSION},\"topic\":{},\"cases\":[\n{}\n]}}\n",
        json!(topic),
        cases.join(",\n")
    )
}

fn case(id: &str, example: &Example) -> Value {
    let operation = match example.operation {
        Operation::Read => "read",
        Operation::Render => "render",
        Operation::Escape => "escape",
        Operation::Near => "near",
    };
    let mut case = json!({
        "id": id, "class": example.class, "operation": operation, "dialect": dialect(&example.words),
    });
    case["input"] = match example.operation {
        Operation::Render => parsed(example, &example.input),
        _ => example.input.clone().into(),
    };
    for (name, content) in &example.expectations {
        let (key, value) = match name.as_str() {
            "events" => ("events", content.lines().map(event).collect()),
            "json" => ("calls", parsed(example, content)),
            "schema" => ("schema", parsed(example, content)),
            "near" => ("near", near_misses(content)),
            "refused" => ("refused", true.into()),
            name => (name, content.as_str().into()),
        };
        case[key] = value;
    }
    case
}

fn parsed(example: &Example, text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{}: {error}", example.place))
}

/// The words of a fence that choose the dialect, as an object.
fn dialect(words: &[String]) -> Value {
    let mut dialect = Map::new();
    for word in words {
        let (key, value) = match word.split_once('=') {
            None if ["block", "emoji", "auto"].contains(&word.as_str()) => {
                ("syntax", word.as_str().into())
            }
            None => (word.as_str(), true.into()),
            Some((key @ ("reasoning" | "leading-reasoning"), markers)) => {
                (key, markers.split(',').collect())
            }
            Some((key, value)) => (key, value.into()),
        };
        dialect.insert(key.replace('-', "_"), value);
    }
    dialect.into()
}

/// A line of an `events` fence as an object.
fn event(line: &str) -> Value {
    let (kind, rest) = line.split_once(' ').unwrap_or((line, ""));
    match kind {
        "text" | "reasoning" | "value" | "ignored" => json!({"type": kind, "text": string(rest)}),
        "argument" => json!({"type": kind, "pointer": string(rest)}),
        "end" => json!({"type": kind, "termination": rest}),
        "diagnostic" => {
            let (code, text) = rest.split_once(' ').expect("a code and its text");
            json!({"type": kind, "code": code, "text": string(text)})
        }
        "call" => {
            let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
            let name = values.next().and_then(Result::ok).expect("a name");
            let mut event = json!({"type": kind, "name": name});
            let mut rest = rest[values.byte_offset()..].trim_start();
            while let Some((key, after)) = rest.split_once('=') {
                let mut values = serde_json::Deserializer::from_str(after).into_iter::<Value>();
                event[key] = values.next().and_then(Result::ok).expect("a value");
                rest = after[values.byte_offset()..].trim_start();
            }
            event
        }
        _ => json!({"type": kind}),
    }
}

/// The finds of a `near` fence. What is written is not escaped: it may hold quotation marks and line ends.
fn near_misses(content: &str) -> Value {
    let inside = content
        .strip_prefix('"')
        .and_then(|text| text.strip_suffix('"'));
    let finds = inside.into_iter().flat_map(|text| text.split("\"\n\""));
    finds
        .map(|find| {
            let (written, suggestion) = find.split_once("\" -> \"").expect("an arrow");
            json!({"written": written, "suggestion": suggestion})
        })
        .collect()
}

fn string(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}
