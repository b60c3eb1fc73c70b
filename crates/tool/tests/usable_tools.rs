//! Invalid tool definitions: each is offered with a relaxed schema if its name is usable, and affects no other.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use plaincall_tool::{ToolSpec, definitions::read_usable_tools};
use serde_json::{Value, json};

const EVEN: &str =
    r#"{"type":"function","function":{"name":"even","parameters":{"type":"object"}}}"#;

/// Checks an invalid definition between valid ones: its relaxed schema, or nothing if it is dropped, and the error's
/// location.
fn check(definition: &str, at: &str, expected: Option<&Value>) {
    let read = read_usable_tools([EVEN, definition]);
    let names: Vec<&str> = read.tools.iter().map(|tool| tool.name.as_str()).collect();
    assert_eq!(names.first(), Some(&"even"), "{definition}");
    let found = read.tools.get(1).map(ToolSpec::to_schema);
    assert_eq!(found.as_ref(), expected, "{definition}");
    for tool in &read.tools {
        assert_eq!(tool.check(), Ok(()), "{definition}");
    }
    let changed: Vec<(&str, bool)> = read
        .changed
        .iter()
        .map(|one| (one.reason.at.as_str(), one.is_dropped))
        .collect();
    assert_eq!(changed, [(at, expected.is_none())], "{definition}");
    assert!(!read.changed.iter().any(|one| one.reason.message.is_empty()));
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn odd_schemas_become_looser() {
    let any = json!({"type": "object", "additionalProperties": true});
    let names: serde_json::Map<String, Value> = (0..40)
        .map(|at| (format!("p{at}"), json!({"type": "any"})))
        .collect();
    let all: serde_json::Map<String, Value> =
        (0..40).map(|at| (format!("p{at}"), json!({}))).collect();
    for (schema, at, expected) in [
        // Names of parameters that no call can express.
        (
            json!({"type": "object", "properties": {"first name": {"type": "string"}, "b": {"type": "integer"}}, "required": ["first name", "b"]}),
            "/properties/first name",
            json!({"type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"]}),
        ),
        (
            json!({"properties": {"-1": {}, "": {}, "a\nb": {}, "007": {}, "c": {"type": "string"}}}),
            "/properties/-1",
            json!({"properties": {"c": {"type": "string"}}}),
        ),
        // Keywords with invalid values.
        (
            json!({"properties": {"a": {"type": "any"}}}),
            "/properties/a/type",
            json!({"properties": {"a": {}}}),
        ),
        // Names of types in Python, and in another case.
        (
            json!({"properties": {"a": {"type": "dict"}, "b": {"type": "STRING"}}}),
            "/properties/a/type",
            json!({"properties": {"a": {"type": "object"}, "b": {"type": "string"}}}),
        ),
        (
            json!({"properties": {"a": {}}, "required": null}),
            "/required",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": {}}, "required": "a"}),
            "/required",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": {"required": true}}}),
            "/properties/a/required",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": {}}, "required": ["a", "b"]}),
            "/required",
            json!({"properties": {"a": {}}, "required": ["a"]}),
        ),
        (
            json!({"properties": {"a": {"$ref": "https://example.com/a.json", "description": "A."}}}),
            "/properties/a/$ref",
            json!({"properties": {"a": {"description": "A."}}}),
        ),
        (
            json!({"properties": {"a": {"$ref": "#/$defs/b"}}}),
            "/properties/a/$ref",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": "string"}}),
            "/properties/a",
            json!({"properties": {"a": true}}),
        ),
        (
            json!({"properties": {"a": null}}),
            "/properties/a",
            json!({"properties": {"a": true}}),
        ),
        (
            json!({"properties": {"a": {"type": "array", "items": "string"}}}),
            "/properties/a/items",
            json!({"properties": {"a": {"type": "array", "items": true}}}),
        ),
        (
            json!({"properties": {"a": {"anyOf": [{"type": "str"}, 5]}}}),
            "/properties/a/anyOf/0/type",
            json!({"properties": {"a": {"anyOf": [{"type": "string"}, true]}}}),
        ),
        (
            json!({"properties": {"a": {"anyOf": []}}}),
            "/properties/a/anyOf",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": {"enum": "x"}}}),
            "/properties/a/enum",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": {"minLength": "3"}}}),
            "/properties/a/minLength",
            json!({"properties": {"a": {}}}),
        ),
        (
            json!({"properties": {"a": false}}),
            "/properties/a",
            json!({"properties": {}}),
        ),
        (
            json!({"properties": null, "type": "object"}),
            "/properties",
            json!({"type": "object"}),
        ),
        (json!({"properties": []}), "/properties", json!({})),
        (json!({"type": "string"}), "/type", json!({})),
        (
            json!({"type": "Object", "properties": {"a": {}}}),
            "/type",
            json!({"type": "object", "properties": {"a": {}}}),
        ),
        (
            json!({"additionalProperties": null}),
            "/additionalProperties",
            json!({"additionalProperties": true}),
        ),
        (
            json!({"properties": names}),
            "/properties/p0/type",
            json!({"properties": all}),
        ),
        // Schemas of other types than objects.
        (json!([]), "", any.clone()),
        (json!("none"), "", any.clone()),
        (json!(true), "", any.clone()),
    ] {
        for function in [true, false] {
            let tool = json!({"name": "odd", "description": "Odd.", "parameters": schema});
            let (tool, place) = if function {
                (
                    json!({"type": "function", "function": tool}),
                    "/1/function/parameters",
                )
            } else {
                (tool, "/1/parameters")
            };
            check(&tool.to_string(), &format!("{place}{at}"), Some(&expected));
        }
    }
    // A schema with more errors than are removed accepts any object.
    let spoiled: serde_json::Map<String, Value> =
        (0..100).map(|at| (format!("p {at}"), json!({}))).collect();
    let tool = json!({"name": "odd", "parameters": {"properties": spoiled}});
    check(
        &tool.to_string(),
        "/1/parameters/properties/p 0",
        Some(&any),
    );
}

#[test]
fn odd_definitions_beside_the_schema() {
    let any = json!({"type": "object", "additionalProperties": true});
    let a = json!({"properties": {"a": {}}});
    for (definition, at, expected) in [
        (
            r#"{"name":"odd","description":5,"parameters":{"properties":{"a":{}}}}"#,
            "/1/description",
            Some(&a),
        ),
        (
            r#"{"name":"odd","params":{"properties":{"a":{}}}}"#,
            "/1/params",
            Some(&any),
        ),
        (
            r#"{"name":"odd","parameters":{"properties":{"a":{}}},"inputSchema":{}}"#,
            "/1/inputSchema",
            Some(&a),
        ),
        (
            r#"{"name":"odd","parameters":{"properties":{"a":{}}},"annotations":[]}"#,
            "/1/annotations",
            Some(&a),
        ),
        (
            r#"{"name":"odd","parameters":{"properties":{"a":{"type":"string"},"a":{}}}}"#,
            "/1",
            Some(&a),
        ),
        // Names that no call can express, and tools that are not functions.
        (r#"{"name":"-a"}"#, "/1/name", None),
        (r#"{"name":"a b"}"#, "/1/name", None),
        (r#"{"name":"a:b"}"#, "/1/name", None),
        (r#"{"name":""}"#, "/1/name", None),
        (r#"{"name":5}"#, "/1/name", None),
        (r#"{"name":null}"#, "/1/name", None),
        (r#"{"description":"no name"}"#, "/1", None),
        ("{}", "/1", None),
        ("null", "/1", None),
        (
            &format!(
                r#"{{"name":"deep","parameters":{}{}}}"#,
                "[".repeat(200),
                "]".repeat(200)
            ),
            "/1",
            None,
        ),
        ("[]", "/1", None),
        (r#"{"type":"web_search"}"#, "/1/type", None),
        (r#"{"type":"web_search","name":"search"}"#, "/1/type", None),
        (
            r#"{"type":"custom","custom":{"name":"sh"}}"#,
            "/1/custom",
            None,
        ),
        (
            r#"{"type":"function","function":"sh"}"#,
            "/1/function",
            None,
        ),
        // Calls with this name mean the first tool.
        (r#"{"name":"even"}"#, "/1", None),
        (r#"{"name":"even","parameters":[]}"#, "/1", None),
    ] {
        check(definition, at, expected);
    }
}

#[test]
fn even_definitions_stay() {
    let read = read_usable_tools([EVEN, r#"{"name":"b","strict":true}"#]);
    assert!(read.changed.is_empty() && read.is_strict);
    assert_eq!(read.tools.len(), 2);
    assert!(!read_usable_tools([EVEN]).is_strict);
    // A dropped tool does not count as strict.
    assert!(!read_usable_tools([r#"{"name":"-a","strict":true}"#]).is_strict);
}
