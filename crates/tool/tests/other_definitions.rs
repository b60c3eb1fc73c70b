//! Tool definitions in the JSON of other programs.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_tool::{Effect, definitions::read_tool_definitions};
use serde_json::{Value, json};

/// Each definition reads as `name(parameters): description`.
fn check(document: &Value, expected: &[&str]) {
    let tools = read_tool_definitions(&document.to_string())
        .unwrap_or_else(|error| panic!("{document}: {error}"));
    let found: Vec<String> = tools
        .iter()
        .map(|tool| {
            assert_eq!(tool.effect, Effect::Write, "{document}");
            let parameters: Vec<String> = tool
                .parameters()
                .iter()
                .map(|one| {
                    let optional = if one.required { "" } else { "?" };
                    format!("{}: {}{optional}", one.name, one.kind.name())
                })
                .collect();
            format!(
                "{}({}): {}",
                tool.name,
                parameters.join(", "),
                tool.description
            )
        })
        .collect();
    assert_eq!(found, expected, "{document}");
}

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {"city": {"type": "string"}, "unit": {"enum": ["c", "f"]}},
        "required": ["city"],
    })
}

const WEATHER: &str = "weather(city: string, unit: string?): Reports it.";

#[test]
fn in_every_form() {
    let function = json!({"name": "weather", "description": "Reports it.", "parameters": schema(), "strict": true});
    let mut flat = function.clone();
    flat["type"] = "function".into();
    let mcp = json!({"name": "weather", "title": "Weather", "description": "Reports it.", "inputSchema": schema(),
        "outputSchema": {"type": "object"}, "annotations": {"readOnlyHint": true, "idempotentHint": true, "destructiveHint": false}});
    let anthropic = json!({"name": "weather", "description": "Reports it.", "input_schema": schema(), "cache_control": {"type": "ephemeral"}});
    for tool in [
        json!({"type": "function", "function": function}),
        flat,
        function,
        mcp,
        anthropic,
    ] {
        check(&tool, &[WEATHER]);
        check(&json!([tool]), &[WEATHER]);
        check(
            &json!({"model": "m", "tools": [tool], "nextCursor": null}),
            &[WEATHER],
        );
        check(
            &json!({"jsonrpc": "2.0", "id": 1, "result": {"tools": [tool]}}),
            &[WEATHER],
        );
    }
    check(&json!([]), &[]);
    check(&json!({"name": "now"}), &["now(): "]);
    check(
        &json!([{"name": "a", "description": null, "parameters": null}, {"type": "custom", "name": "b", "input_schema": {"type": "object"}}]),
        &["a(): ", "b(): "],
    );
    // As generators write it: definitions, titles, defaults, null among others.
    check(
        &json!({"name": "plan", "inputSchema": {
            "$schema": "http://json-schema.org/draft-07/schema#", "title": "Plan", "type": "object",
            "definitions": {"Step": {"type": "object", "properties": {"do": {"type": "string"}}, "required": ["do"]}},
            "properties": {
                "steps": {"title": "Steps", "type": "array", "items": {"$ref": "#/definitions/Step"}},
                "note": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": null},
                "first": {"allOf": [{"$ref": "#/definitions/Step"}], "description": "The first."},
            },
            "required": ["steps"], "additionalProperties": false,
        }}),
        &["plan(steps: array, note: string?, first: object?): "],
    );
}

/// `expected` holds the location of each error with part of its message.
fn errors(document: &str, expected: &[(&str, &str)]) {
    let error = read_tool_definitions(document).expect_err("a error");
    let places: Vec<&str> = error.errors.iter().map(|one| one.at.as_str()).collect();
    let expected_places: Vec<&str> = expected.iter().map(|(at, _)| *at).collect();
    assert_eq!(places, expected_places, "{document}: {error}");
    for (error, (_, part)) in error.errors.iter().zip(expected) {
        assert!(error.message.contains(part), "{document}: {error}");
    }
}

#[test]
fn mistakes_have_places() {
    errors("", &[("", "invalid JSON")]);
    errors("[", &[("", "invalid JSON")]);
    errors("5", &[("", "list of tools")]);
    errors(r#"{"tools": {}}"#, &[("/tools", "list of tools")]);
    errors(r#"{"result": {}}"#, &[("/result", "`tools`")]);
    errors(
        r#"[{"name": "a"}, 5, {}, {"name": 1}]"#,
        &[
            ("/1", "an object"),
            ("/2", "`name`"),
            ("/3/name", "a string"),
        ],
    );
    errors(
        r#"{"tools": [{"type": "function", "function": 5}, {"type": "web_search_2025", "name": "w"}]}"#,
        &[
            ("/tools/0/function", "an object"),
            ("/tools/1/type", "provider"),
        ],
    );
    errors(
        r#"[{"type": "function", "function": {"name": "a b"}}, {"name": "c", "description": 5}]"#,
        &[
            ("/0/function/name", "tool name"),
            ("/1/description", "a string"),
        ],
    );
    errors(
        r#"[{"name": "a", "parameters": {"type": "array"}}, {"name": "b", "inputSchema": {"properties": {"x": {"type": "text"}}}}]"#,
        &[
            ("/0/parameters/type", "object"),
            ("/1/inputSchema/properties/x/type", "one of"),
        ],
    );
    errors(
        r#"[{"name": "a", "parameters": {}, "input_schema": {}}, {"name": "b"}, {"name": "b"}]"#,
        &[("/0/input_schema", "already"), ("/2", "also")],
    );
    errors(
        r#"[{"name": "a", "input_schema": {"properties": {"x y": {"type": "string"}}}}]"#,
        &[("/0/input_schema/properties/x y", "space or tab")],
    );
    errors(r#"[{"name": "a", "name": "b"}]"#, &[("", "duplicate key")]);
    errors(
        r#"[{"name": "a", "annotations": true}, {"name": "b", "annotations": {"readOnlyHint": "true"}},
            {"name": "c", "input_schema": {}, "input_examples": [1]}]"#,
        &[
            ("/0/annotations", "an object"),
            ("/1/annotations/readOnlyHint", "true or false"),
            ("/2/input_examples", "a list of examples"),
        ],
    );
}

#[test]
fn keys_that_are_nearly_right_are_named() {
    for (key, meant) in [
        ("inputschema", "inputSchema"),
        ("input-schema", "input_schema"),
        ("schema", "parameters"),
        ("imput_schema", "input_schema"),
        ("Parameters", "parameters"),
        ("paramaters", "parameters"),
        ("params", "parameters"),
    ] {
        let tool = json!({"name": "a", "description": "", key: {"type": "object"}});
        let message = format!("did you mean `{meant}`?");
        errors(&tool.to_string(), &[(&format!("/{key}"), &message)]);
    }
    errors(
        r#"{"name": "a", "descripton": "b"}"#,
        &[("/descripton", "`description`")],
    );
    errors(r#"[{"Name": "a"}]"#, &[("/0/Name", "`name`")]);
    errors(r#"{"Tools": [{"name": "a"}]}"#, &[("/Tools", "`tools`")]);
    // A key with another meaning, or beside the right key, is ignored.
    for key in [
        "outputSchema",
        "title",
        "type_",
        "strict",
        "cache_control",
        "_meta",
        "input_examples",
        "defer_loading",
        "icons",
        "execution",
    ] {
        let value = if key == "input_examples" {
            json!([])
        } else {
            json!({"type": "object"})
        };
        check(&json!({"name": "a", key: value}), &["a(): "]);
    }
    check(
        &json!({"name": "a", "names": 5, "description": "b", "desc": 5, "parameters": {}, "params": 5}),
        &["a(): b"],
    );
}

fn hinted(annotations: &Value, expected: Option<Effect>) {
    let tools =
        read_tool_definitions(&json!({"name": "a", "annotations": annotations}).to_string());
    let tools = tools.unwrap_or_else(|error| panic!("{annotations}: {error}"));
    assert_eq!(tools[0].hinted_effect, expected, "{annotations}");
    assert_eq!(tools[0].effect, Effect::Write, "{annotations}");
}

#[test]
fn hints_of_a_server_about_its_tools_are_kept_and_not_trusted() {
    hinted(&json!(null), None);
    hinted(&json!({"title": "Look", "openWorldHint": false}), None);
    hinted(&json!({"readOnlyHint": true}), Some(Effect::Read));
    hinted(
        &json!({"readOnlyHint": true, "destructiveHint": true}),
        Some(Effect::Read),
    );
    hinted(
        &json!({"readOnlyHint": false, "idempotentHint": true}),
        Some(Effect::Idempotent),
    );
    hinted(&json!({"idempotentHint": true}), Some(Effect::Idempotent));
    hinted(&json!({"destructiveHint": false}), Some(Effect::Write));
    hinted(
        &json!({"readOnlyHint": false, "idempotentHint": null}),
        Some(Effect::Write),
    );
}

#[test]
fn examples_of_a_definition_are_those_of_its_schema() {
    let examples = |definition: Value| {
        let tools =
            read_tool_definitions(&definition.to_string()).expect("definitions that are right");
        tools[0].to_schema().get("examples").cloned()
    };
    let mut definition =
        json!({"name": "a", "input_schema": schema(), "input_examples": [{"city": "Ulm"}]});
    assert_eq!(examples(definition.clone()), Some(json!([{"city": "Ulm"}])));
    definition["input_schema"]["examples"] = json!([{"city": "Bonn"}]);
    assert_eq!(
        examples(definition.clone()),
        Some(json!([{"city": "Bonn"}, {"city": "Ulm"}]))
    );
    assert_eq!(
        examples(json!({"name": "a", "input_schema": schema(), "input_examples": []})),
        None
    );
}

/// Errors that only the compiler of schemas finds.
#[cfg(feature = "jsonschema")]
#[test]
fn schemas_that_cannot_be_validated() {
    errors(
        r#"[{"name": "a", "parameters": {"properties": {"x": {"type": "string", "pattern": "("}}}}]"#,
        &[("/0/parameters/properties/x/pattern", "invalid JSON Schema")],
    );
    errors(
        r#"[{"name": "a", "parameters": {"properties": {"x": {"minimum": "1"}}}}]"#,
        &[("/0/parameters/properties/x/minimum", "invalid JSON Schema")],
    );
}
