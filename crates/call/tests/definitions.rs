//! Definitions of tools: from and to JSON Schema, and their consistency.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_call::{Parameter, ParameterKind, ToolSpec};
use serde_json::{Value, json};

#[test]
fn a_schema_goes_in_and_comes_out() {
    let schema = json!({
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where."},
            "lines": {"type": "integer"},
            "ratio": {"type": "number"},
            "deep": {"type": "boolean"},
            "tags": {"type": "array"},
            "more": {"type": "object"},
            "any": {},
        },
        "required": ["path", "tags"],
        "additionalProperties": false,
    });
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema that is understood");
    assert_eq!(tool.to_schema(), schema);
    let shown: Vec<(&str, ParameterKind, bool)> = tool
        .parameters
        .iter()
        .map(|one| (one.name.as_str(), one.kind, one.required))
        .collect();
    assert_eq!(shown[0], ("path", ParameterKind::String, true));
    assert_eq!(shown[6], ("any", ParameterKind::Any, false));
    assert_eq!(tool.check(), Ok(()));

    // Annotations bind nothing.
    let schema = json!({"$schema": "x", "title": "T", "type": "object", "properties": {
        "a": {"title": "A", "type": "string", "default": "x", "examples": ["y"], "deprecated": true}, "b": true,
    }});
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema that is understood");
    assert_eq!(tool.parameters.len(), 2);
}

#[test]
fn kinds_have_names() {
    for kind in ParameterKind::ALL {
        assert_eq!(ParameterKind::from_name(kind.name()), Some(kind));
        assert_eq!(json!(kind), kind.name());
    }
    for name in ["", "null", "String", "string?", "list"] {
        assert_eq!(ParameterKind::from_name(name), None, "{name}");
    }
}

fn refused(schema: &Value, at: &str, part: &str) {
    let error = ToolSpec::new("t")
        .parameters_from_schema(schema)
        .expect_err("a schema that is refused");
    assert_eq!(error.at, at, "{schema}");
    assert!(error.message.contains(part), "{schema}: {error}");
}

#[test]
fn what_is_not_enforced_is_refused_by_name() {
    for keyword in [
        "enum",
        "const",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "multipleOf",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "items",
        "prefixItems",
        "minItems",
        "uniqueItems",
        "contains",
        "properties",
        "required",
        "additionalProperties",
        "patternProperties",
        "anyOf",
        "oneOf",
        "allOf",
        "not",
        "if",
        "$ref",
        "$defs",
        "surprise",
    ] {
        let mut property = json!({"type": "string"});
        property[keyword] = json!([]);
        let schema = json!({"type": "object", "properties": {"a/b": property}});
        refused(&schema, &format!("/properties/a~1b/{keyword}"), keyword);
    }
    for keyword in [
        "anyOf",
        "$ref",
        "$defs",
        "minProperties",
        "patternProperties",
        "dependentRequired",
        "if",
    ] {
        let mut schema = json!({"type": "object"});
        schema[keyword] = json!({});
        refused(&schema, &format!("/{keyword}"), keyword);
    }
    refused(&json!([]), "", "an object");
    refused(&json!({}), "", "is missing");
    refused(&json!({"type": "array"}), "/type", "object");
    refused(
        &json!({"type": "object", "additionalProperties": true}),
        "/additionalProperties",
        "leave it out",
    );
    refused(
        &json!({"type": "object", "properties": []}),
        "/properties",
        "an object",
    );
    refused(
        &json!({"type": "object", "properties": {"a": 1}}),
        "/properties/a",
        "JSON Schema",
    );
    refused(
        &json!({"type": "object", "properties": {"a": false}}),
        "/properties/a",
        "JSON Schema",
    );
    refused(
        &json!({"type": "object", "properties": {"a": {"type": ["string", "null"]}}}),
        "/properties/a/type",
        "one of",
    );
    refused(
        &json!({"type": "object", "properties": {"a": {"type": "null"}}}),
        "/properties/a/type",
        "one of",
    );
    refused(
        &json!({"type": "object", "properties": {"a": {"type": "any"}}}),
        "/properties/a/type",
        "one of",
    );
    refused(
        &json!({"type": "object", "required": "a"}),
        "/required",
        "list",
    );
    refused(
        &json!({"type": "object", "required": ["a"]}),
        "/required",
        "`a`",
    );
}

/// `expected` is empty for a consistent definition, else the place of what is wrong.
fn consistency(tool: &ToolSpec, expected: &str) {
    let found = tool.check().map_err(|error| error.at);
    assert_eq!(found.err().unwrap_or_default(), expected, "{tool:?}");
}

#[test]
fn consistent_or_not() {
    let text = |name: &str| Parameter::new(name, ParameterKind::String);
    let number = |name: &str| Parameter::new(name, ParameterKind::Integer);
    let two = || {
        ToolSpec::new("t")
            .parameter(text("a"))
            .parameter(number("b").optional())
    };
    consistency(&two(), "");
    consistency(&two().body("a").positional(["b"]), "");
    consistency(&two().positional(["a"]), "");
    consistency(&two().body("c"), "/body");
    consistency(&two().body("b"), "/body");
    consistency(&two().body("a").positional(["b", "a"]), "/positional/1");
    consistency(&two().positional(["a", "a"]), "/positional/1");
    consistency(&two().positional(["c"]), "/positional/0");
    consistency(&two().positional(["b"]), "/positional");
    consistency(
        &two()
            .parameter(Parameter::new("l", ParameterKind::Array).optional())
            .positional(["a", "l"]),
        "/positional/1",
    );
    // A line has no room for what is written with `]`.
    let list = |kind| two().parameter(Parameter::new("l/", kind));
    for kind in [ParameterKind::Array, ParameterKind::Object] {
        consistency(&list(kind).body("a"), "/parameters/l~1");
        consistency(&list(kind), "");
        let optional = two().parameter(Parameter::new("l", kind).optional());
        consistency(&optional.body("a"), "");
    }
    consistency(&list(ParameterKind::Any).body("a"), "");
    consistency(&two().parameter(text("a")), "/parameters/a");
    for name in ["create-file", "run_query", "Ünï", "9", "_x", "a.b"] {
        consistency(&ToolSpec::new(name), "");
    }
    for name in [
        "", "a b", "a\tb", "-a", "a:b", "a]", "a`", "\"a\"", "a\nb", "/a",
    ] {
        consistency(&ToolSpec::new(name), "/name");
    }
    for name in ["", "a b", "01", "-1", "a\nb"] {
        consistency(
            &ToolSpec::new("t").parameter(text(name)),
            &format!("/parameters/{name}"),
        );
    }
    consistency(
        &ToolSpec::new("t")
            .parameter(text("a/b~"))
            .parameter(text("0")),
        "",
    );
}
