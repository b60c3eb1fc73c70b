//! Schemas for which a validation without a limit would take hours and all memory.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use plaincall_call::{Document, ToolSpec, bind};
use plaincall_syntax::Dialect;
use serde_json::{Value, json};

/// Binds a call of a tool `t` whose parameter `x` has the first of these definitions. Returns the problems.
fn problems(definitions: &Value, x: &str) -> String {
    let schema = json!({"properties": {"x": {"$ref": "#/$defs/d40"}}, "$defs": definitions});
    let tool = ToolSpec::new("t").parameters_from_schema(&schema);
    let tool = tool.expect("an object's schema");
    let text = format!("!!!GADGET_START:t\n!!!ARG:x\n{x}\n!!!GADGET_END");
    let document = Document::parse(&text, &Dialect::block()).expect("a valid dialect");
    let call = document.calls().next().expect("a call");
    let problems = bind(&tool, call).err().into_iter().flatten();
    let messages: Vec<String> = problems.map(|problem| problem.message).collect();
    messages.join("\n")
}

/// Definitions `d0` to `d40`, each made of a reference to the one before.
fn chain(first: &Value, next: impl Fn(Value) -> Value) -> Value {
    let mut definitions = json!({"d0": first});
    for level in 1..=40 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        definitions[format!("d{level}")] = next(below);
    }
    definitions
}

#[test]
fn work_that_doubles_with_each_definition_is_refused() {
    let refused = "t cannot be called with these arguments: validating them by its schema takes too many steps; send simpler values";
    let string = json!({"type": "string", "maxLength": 3});
    for doubled in [
        chain(&string, |below| json!({"anyOf": [below, below]})),
        chain(&string, |below| json!({"oneOf": [below, below]})),
        chain(&string, |below| json!({"allOf": [below, below]})),
        chain(&string, |below| json!({"not": {"anyOf": [below, below]}})),
        chain(
            &string,
            |below| json!({"if": below, "then": below, "else": below}),
        ),
        chain(
            &json!({"required": ["a"]}),
            |below| json!({"allOf": [below], "unevaluatedProperties": {"type": "string"}}),
        ),
        chain(
            &json!({"items": {"type": "string"}}),
            |below| json!({"anyOf": [{"$dynamicRef": below["$ref"]}, {"$dynamicRef": below["$ref"]}]}),
        ),
    ] {
        let found = ["long text", "{\"b\": 1}", "[1]"].map(|x| problems(&doubled, x));
        assert!(
            found.iter().any(|found| found == refused),
            "{doubled}\n{found:?}"
        );
        let is_refused = |found: &String| found.is_empty() || found == refused;
        assert!(found.iter().all(is_refused), "{doubled}\n{found:?}");
    }
}

#[test]
fn names_do_not_hide_work() {
    // References in `e` lead to its own definitions, not to those of the document.
    let hidden = chain(
        &json!({"type": "string", "maxLength": 3}),
        |below| json!({"anyOf": [below, below]}),
    );
    let mut outer = chain(&json!({}), |_| json!({}));
    outer["e"] = json!({"$id": "https://example.com/e", "$defs": hidden});
    outer["d40"] = json!({"$ref": "#/$defs/e/$defs/d40"});
    assert!(problems(&outer, "long text").contains("too many steps"));
}

#[test]
fn long_values_and_usual_schemas_are_validated() {
    let person = json!({"type": "object", "required": ["kind", "name"], "properties": {"kind": {"const": "person"}, "name": {"type": "string", "minLength": 1}, "tags": {"type": "array", "items": {"type": "string"}}}});
    let team = json!({"type": "object", "required": ["kind", "members"], "properties": {"kind": {"const": "team"}, "members": {"type": "array", "items": {"$ref": "#/$defs/d40"}}}});
    let bot = json!({"type": "object", "required": ["kind", "owner"], "properties": {"kind": {"const": "bot"}, "owner": {"$ref": "#/$defs/d40"}}});
    let definitions = json!({"d40": {"oneOf": [person, team, bot]}});
    let mut value = json!({"kind": "person", "name": "n", "tags": ["a", "b"]});
    for _ in 0..12 {
        value = json!({"kind": "team", "members": [value, {"kind": "bot", "owner": value}]});
    }
    assert_eq!(problems(&definitions, &value.to_string()), "");
    let numbers = json!({"d40": {"type": "array", "items": {"type": "integer", "minimum": 0}}});
    let long = vec!["7"; 100_000].join(",");
    assert_eq!(problems(&numbers, &format!("[{long}]")), "");
    let found = problems(&numbers, &format!("[{},-1]", vec!["7"; 1_000].join(",")));
    assert_eq!(found, "`x/1000`: expected at least 0, found `-1`");
}
