//! Definitions of tools: from and to JSON Schema, and their consistency.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
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
        .parameters()
        .iter()
        .map(|one| (one.name.as_str(), one.kind, one.required))
        .collect();
    assert_eq!(shown[0], ("path", ParameterKind::String, true));
    assert_eq!(shown[6], ("any", ParameterKind::Any, false));
    assert_eq!(tool.check(), Ok(()));

    // Annotations are not constraints.
    let schema = json!({"$schema": "x", "title": "T", "type": "object", "properties": {
        "a": {"title": "A", "type": "string", "default": "x", "examples": ["y"], "deprecated": true}, "b": true,
    }});
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema that is understood");
    assert_eq!(tool.parameters().len(), 2);
}

#[test]
fn kinds_have_names() {
    use ParameterKind::{Any, Array, Boolean, Integer, Number, Object, String};
    for kind in [String, Number, Integer, Boolean, Array, Object, Any] {
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
fn an_invalid_schema_is_rejected_with_its_location() {
    refused(&json!([]), "", "an object");
    refused(&json!({"type": "array"}), "/type", "object");
    refused(
        &json!({"type": "object", "properties": []}),
        "/properties",
        "an object",
    );
    refused(&json!({"required": ["a"]}), "/required", "`a`");
    refused(
        &json!({"properties": {"a": false}}),
        "/properties/a",
        "remove the parameter",
    );
    refused(
        &json!({"properties": {"a": {"type": "string", "allOf": [{"type": "integer"}]}}}),
        "/properties/a",
        "remove the parameter",
    );
    // The keyword, its value, and part of the message.
    for (keyword, value, part) in [
        ("type", json!("text"), "one of string"),
        ("type", json!("any"), "one of string"),
        ("type", json!(["string", "date"]), "one of string"),
        ("type", json!([]), "one of string"),
        ("enum", json!("a"), "list of values"),
        ("required", json!("a"), "list of property names"),
        ("required", json!(true), "list of property names"),
        ("properties", json!([]), "an object"),
        ("items", json!(1), "JSON Schema"),
        ("anyOf", json!([]), "non-empty list"),
        ("oneOf", json!({}), "non-empty list"),
        ("not", json!("x"), "JSON Schema"),
        ("minLength", json!(-1), "integer"),
        ("maxItems", json!("1"), "integer"),
        ("$ref", json!(1), "the location of the schema"),
        ("$ref", json!("#/$defs/none"), "does not exist"),
        ("$ref", json!("#none"), "does not exist"),
        ("$ref", json!("other.json"), "points outside"),
    ] {
        let mut property = json!({});
        property[keyword] = value;
        let schema = json!({"type": "object", "properties": {"a/b": property}});
        refused(&schema, &format!("/properties/a~1b/{keyword}"), part);
    }
    refused(
        &json!({"properties": {"a": {"items": [{"type": "integer"}, {"type": 5}]}}}),
        "/properties/a/items/1/type",
        "one of",
    );
    let mut deep = json!({"type": "integer"});
    for _ in 0..200 {
        deep = json!({"items": deep});
    }
    let error = ToolSpec::new("t")
        .parameters_from_schema(&json!({"properties": {"a": deep}}))
        .expect_err("a schema that is too deep");
    assert!(error.message.contains("nested"), "{error}");
}

#[test]
fn parameters_of_a_schema() {
    let check = |schema: Value, expected: &[(&str, ParameterKind, bool, bool)]| {
        let tool = ToolSpec::new("t")
            .parameters_from_schema(&schema)
            .expect("a schema that is understood");
        let found: Vec<_> = tool
            .parameters()
            .iter()
            .map(|one| (one.name.as_str(), one.kind, one.is_scalar(), one.required))
            .collect();
        assert_eq!(found, expected, "{schema}");
        assert_eq!(tool.to_schema(), schema);
        tool
    };
    let tool = check(
        json!({
            "$defs": {"unit": {"enum": ["mm", "m"], "description": "A length."}, "node": {"properties": {"next": {"$ref": "#/$defs/node"}}}},
            "properties": {
                "unit": {"$ref": "#/$defs/unit"},
                "count": {"type": ["integer", "null"]},
                "size": {"anyOf": [{"type": "number"}, {"enum": ["auto"]}]},
                "node": {"$ref": "#/$defs/node"},
                "tags": {"items": {"type": "string"}},
                "level": {"enum": [1, 2]},
                "ratio": {"const": 0.5},
                "name": {"type": "string", "nullable": true},
                "any": true,
            },
            "required": ["unit"],
        }),
        &[
            ("unit", ParameterKind::String, true, true),
            ("count", ParameterKind::Integer, true, false),
            ("size", ParameterKind::Any, true, false),
            ("node", ParameterKind::Object, false, false),
            ("tags", ParameterKind::Array, false, false),
            ("level", ParameterKind::Integer, true, false),
            ("ratio", ParameterKind::Number, true, false),
            ("name", ParameterKind::String, true, false),
            ("any", ParameterKind::Any, false, false),
        ],
    );
    assert_eq!(tool.parameters()[0].description, "A length.");
    // The root may consist of parts; only what every alternative requires is required.
    check(
        json!({
            "definitions": {"base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}},
            "allOf": [{"$ref": "#/definitions/base"}],
            "oneOf": [
                {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
                {"properties": {"b": {"type": "integer"}, "c": {"type": "boolean"}}, "required": ["c", "b"]},
            ],
        }),
        &[
            ("a", ParameterKind::String, true, true),
            ("b", ParameterKind::Integer, true, true),
            ("c", ParameterKind::Boolean, true, false),
        ],
    );
    // Of two texts on the line one may contain blanks; a text from a list contains none.
    let usage = |schema: Value| {
        let tool = ToolSpec::new("t").parameters_from_schema(&schema);
        tool.expect("a schema that is understood")
            .usage()
            .to_string()
    };
    assert_eq!(
        usage(
            json!({"properties": {"a": {"type": "string"}, "b": {"enum": ["x", "y"]}}, "required": ["b"]})
        ),
        "t b a...?"
    );
    assert_eq!(
        usage(json!({"properties": {"a": {"type": "string"}, "b": {"type": "string"}}})),
        "t (body: one JSON object)"
    );
}

#[test]
fn a_builder_makes_a_schema() {
    let tool = ToolSpec::new("t")
        .parameter(Parameter::new("a", ParameterKind::String).describe("Where."))
        .parameter(Parameter::from_schema("b", json!({"enum": [1, 2]})).optional());
    let schema = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "description": "Where."}, "b": {"enum": [1, 2]}},
        "required": ["a"],
        "additionalProperties": false,
    });
    assert_eq!(tool.to_schema(), schema);
    assert_eq!(tool.schema().document(), &schema);
    let again = ToolSpec::new("t").parameters_from_schema(&schema);
    let kinds = |tool: &ToolSpec| -> Vec<ParameterKind> {
        tool.parameters().iter().map(|one| one.kind).collect()
    };
    assert_eq!(again.as_ref().map(kinds), Ok(kinds(&tool)));
}

/// `expected` is empty for a consistent definition, otherwise the location of the error.
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
    let wrong = Parameter::from_schema("w", json!({"items": {"type": "text"}}));
    consistency(&two().parameter(wrong), "/properties/w/items/type");
    // The line has no room for values with `]`.
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
        "Del\u{200b}ete",
        "a\u{ad}b",
        "a\u{2066}b",
        "a\u{feff}",
        "",
        "a b",
        "a\tb",
        "-a",
        "a:b",
        "a]",
        "a`",
        "\"a\"",
        "a\nb",
        "/a",
    ] {
        consistency(&ToolSpec::new(name), "/name");
    }
    for name in [
        "",
        "a b",
        "01",
        "-1",
        "a\nb",
        "a\u{200b}",
        "\u{202e}a",
        "a\u{fe0f}",
    ] {
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
