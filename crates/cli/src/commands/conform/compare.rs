//! Comparison of an answer with the results of an example.

use serde_json::{Map, Value};

/// The possible results of an example, in the order of their checks.
const NAMES: [&str; 5] = ["events", "calls", "text", "refused", "near"];

/// A checked result of an example.
pub(super) struct Check {
    pub(super) name: &'static str,
    pub(super) result: Outcome,
}

pub(super) enum Outcome {
    Passed,
    Failed {
        expected: Value,
        found: Value,
    },
    /// The parser reports that it does not support this result.
    Unsupported,
}

/// Returns the names of the results that this example has.
pub(super) fn result_names(case: &Value) -> impl Iterator<Item = &'static str> {
    NAMES.into_iter().filter(|name| case.get(name).is_some())
}

/// Checks each result of the example.
pub(super) fn checks(case: &Value, answer: &Value) -> impl Iterator<Item = Check> {
    result_names(case).map(|name| {
        let is_unsupported = |list: &Vec<Value>| list.iter().any(|it| it == name);
        let result = if answer["unsupported"].as_array().is_some_and(is_unsupported) {
            Outcome::Unsupported
        } else {
            let (expected, found) = (&case[name], &answer[name]);
            let found = if name == "events" {
                merged(found)
            } else {
                found.clone()
            };
            let is_equal = match name {
                "events" => all(expected, &found, same_event),
                "calls" => all(expected, &found, same_call),
                "refused" => found.is_string(),
                "text" if case["operation"] == "render" => {
                    let text = found
                        .as_str()
                        .map(|text| text.strip_suffix('\n').unwrap_or(text));
                    text == expected.as_str()
                }
                _ => *expected == found,
            };
            if is_equal {
                Outcome::Passed
            } else {
                // Without this result, show the complete answer, which may be an error.
                let found = if found.is_null() {
                    answer.clone()
                } else {
                    found
                };
                Outcome::Failed {
                    expected: expected.clone(),
                    found,
                }
            }
        };
        Check { name, result }
    })
}

fn all(expected: &Value, found: &Value, is_same: fn(&Value, &Value) -> bool) -> bool {
    match (expected, found) {
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len() && expected.iter().zip(found).all(|(a, b)| is_same(a, b))
        }
        _ => false,
    }
}

/// Joins adjacent content events of one type and removes empty ones, because chunk boundaries are arbitrary.
fn merged(events: &Value) -> Value {
    let Value::Array(events) = events else {
        return events.clone();
    };
    let mut merged: Vec<Value> = Vec::new();
    for event in events {
        let is_content = ["text", "reasoning", "value", "ignored"]
            .iter()
            .any(|kind| event["type"] == *kind);
        let text = event["text"].as_str().unwrap_or_default();
        match merged.last_mut() {
            _ if is_content && text.is_empty() => {}
            Some(last) if is_content && last["type"] == event["type"] => {
                last["text"] =
                    format!("{}{text}", last["text"].as_str().unwrap_or_default()).into();
            }
            _ => merged.push(event.clone()),
        }
    }
    merged.into()
}

/// Returns whether all keys of the expected event match, and absent keys of a call are absent or empty.
fn same_event(expected: &Value, found: &Value) -> bool {
    let is_empty = |value: &Value| value.is_null() || *value == Value::Array(Vec::new());
    let optional = ["id", "dependencies", "raw_args"].into_iter();
    has_all(expected.as_object(), found)
        && optional
            .filter(|key| expected.get(key).is_none())
            .all(|key| is_empty(&found[key]))
}

/// Returns whether all keys of the expected call match. A call with an error has no parameters. The wording of
/// `problems` is not compared.
fn same_call(expected: &Value, found: &Value) -> bool {
    let mut keys = expected.as_object().cloned().unwrap_or_default();
    let has_problems = keys.remove("problems").is_some();
    let is_invalid = has_problems || keys.contains_key("parseError");
    (!is_invalid || found.get("parameters").is_none()) && has_all(Some(&keys), found)
}

fn has_all(expected: Option<&Map<String, Value>>, found: &Value) -> bool {
    expected
        .into_iter()
        .flatten()
        .all(|(key, value)| found.get(key) == Some(value))
}
