//! Finds calls in a reply: JSON objects with a name and arguments, in fenced blocks, `<tool_call>` tags, lists or the text.

use serde_json::{Map, Value};

use crate::lenient_json::{parse, parse_prefix};

const NAMES: [&str; 4] = ["name", "tool", "tool_name", "function"];
const ARGUMENTS: [&str; 4] = ["arguments", "parameters", "args", "input"];
/// How far into an object its name is searched for, if it cannot be parsed, in bytes.
const NEAR: usize = 80;

/// A call, or what looks like one and is not.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Found {
    Call { name: String, arguments: Value },
    Invalid { error: String },
}

/// Returns the calls of a text in order.
pub(crate) fn find_calls(text: &str, is_tool: impl Fn(&str) -> bool) -> Vec<Found> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find('{') {
        rest = rest.get(at..).unwrap_or_default();
        let length = match parse_prefix(rest) {
            Ok((Value::Object(object), length)) => match call(&object, &is_tool) {
                Some(call) => {
                    found.push(call);
                    length
                }
                // A call may be inside.
                None => 1,
            },
            Err(error) if is_attempt(rest, &is_tool) => {
                found.push(Found::Invalid { error });
                // Where it ends is not known; the next one begins a line.
                rest.find("\n```")
                    .or(rest.find("\n{"))
                    .unwrap_or(rest.len())
            }
            _ => 1,
        };
        rest = rest.get(length..).unwrap_or_default();
    }
    found
}

fn call(object: &Map<String, Value>, is_tool: impl Fn(&str) -> bool) -> Option<Found> {
    let named = NAMES.iter().find_map(|name| object.get(*name))?;
    let (name, object) = match named {
        Value::String(name) => (name, object),
        // As in the API: {"function": {"name": …, "arguments": …}}.
        Value::Object(function) => match function.get("name") {
            Some(Value::String(name)) => (name, function),
            _ => return None,
        },
        _ => return None,
    };
    let given = ARGUMENTS.iter().find_map(|name| object.get(*name));
    let arguments = match given {
        Some(Value::String(text)) => match parse(text) {
            Ok(arguments) => arguments,
            Err(error) => return Some(Found::Invalid { error }),
        },
        Some(arguments) => arguments.clone(),
        None if is_tool(name) => Value::Object(Map::new()),
        None => return None,
    };
    Some(Found::Call {
        name: name.clone(),
        arguments,
    })
}

/// Whether a text that is not JSON was meant as a call: the name of a tool is near its beginning.
fn is_attempt(text: &str, is_tool: impl Fn(&str) -> bool) -> bool {
    let near = text.get(..text.floor_char_boundary(NEAR)).unwrap_or(text);
    let mut parts = near.split(['"', '\'']);
    let has_name = NAMES.iter().any(|name| near.contains(name));
    has_name && parts.any(is_tool)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{Found, find_calls};

    fn call(name: &str, arguments: Value) -> Found {
        let name = name.to_owned();
        Found::Call { name, arguments }
    }

    #[test]
    fn forms_of_calls() {
        let a = || call("a", json!({"x": 1}));
        for (text, expected) in [
            (
                "```json\n{\"name\": \"a\", \"arguments\": {\"x\": 1}}\n```",
                vec![a()],
            ),
            (
                "Sure!\n<tool_call>\n{\"name\": \"a\", \"arguments\": {\"x\": 1}}\n</tool_call>",
                vec![a()],
            ),
            (
                "I call {\"tool\": \"a\", \"args\": {\"x\": 1}} now.",
                vec![a()],
            ),
            (
                "[{\"name\": \"a\", \"parameters\": {\"x\": 1}}, {\"name\": \"b\", \"arguments\": {}}]",
                vec![a(), call("b", json!({}))],
            ),
            (
                "{\"tool_calls\": [{\"type\": \"function\", \"function\": {\"name\": \"a\", \"arguments\": \"{\\\"x\\\": 1}\"}}]}",
                vec![a()],
            ),
            ("{\"name\": \"a\"}", vec![call("a", json!({}))]),
            ("{\"name\": \"Ada Berg\", \"age\": 41}", vec![]),
            ("fn main() { println!(\"a\"); }", vec![]),
            ("The answer is 12.", vec![]),
        ] {
            assert_eq!(find_calls(text, |name| name == "a"), expected, "{text}");
        }
    }

    #[test]
    fn invalid_calls() {
        let text = "```json\n{\"name\": \"a\", \"arguments\": {\"x\": \"the \"no\"\"}}\n```\n```json\n{\"name\": \"a\", \"arguments\": {}}\n```";
        let found = find_calls(text, |name| name == "a");
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(matches!(&found[0], Found::Invalid { error } if error.contains("line 1")));
        assert_eq!(found[1], call("a", json!({})));
    }
}
