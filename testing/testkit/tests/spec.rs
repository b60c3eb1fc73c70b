//! The examples of the specification as calls. What `syntax` alone does with them is shown in
//! `oracle/tests/oracle/specification.rs`, and that they may be split anywhere in `oracle/tests/contract.rs`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed};
use plaincall_syntax::Dialect;
use plaincall_testkit::examples::{self, Operation};
use plaincall_tool::{ToolSet, ToolSpec};
use serde_json::Value;

const FILES: &[&str] = &["common.md", "block.md", "emoji.md", "limits.md"];

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
            read_by(&document, &example.input, &example.dialect, schema)
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
fn read_by(document: &Document, text: &str, dialect: &Dialect, schema: &str) -> Value {
    let schema = serde_json::from_str(schema).expect("a schema is JSON");
    let mut tools = ToolSet::default();
    for call in document.calls() {
        let tool = ToolSpec::new(call.name.as_str())
            .parameters_from_schema(&schema)
            .expect("a schema of an object");
        // Several calls may name one tool.
        let _ = tools.add(tool);
    }
    let check = ReplyCheck::new(dialect, Unclosed::Reject).expect("a dialect");
    let document = Document::read(text, dialect, Some(&tools), check, Stop::Natural);
    let document = document.expect("a dialect");
    let calls = document.decided().map(|call| {
        let mut wire = serde_json::to_value(call).expect("a call is always JSON");
        if let Err(problems) = &call.binding.as_ref().expect("definitions").arguments {
            let messages = problems.iter().map(ToString::to_string);
            wire["problems"] = messages.collect::<Vec<_>>().into();
        }
        wire
    });
    calls.collect()
}
