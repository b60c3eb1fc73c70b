//! Schemas of any size and depth: the list stays about as long as the schema, and nothing is lost.

use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use serde_json::{Map, Value, json};

use crate::prompt::{listed, minified, tool_of};

/// Returns the list, which contains each of the words and is not much longer than the JSON.
fn check(schema: &Value, words: &[&str]) -> String {
    let tool = tool_of(schema).expect("a schema");
    let list = listed([&tool], &Dialect::block());
    let json = minified(&[tool]);
    assert!(
        list.len() <= json.len(),
        "{} bytes, as JSON {}",
        list.len(),
        json.len()
    );
    for word in words {
        assert!(list.contains(word), "no {word:?} in {list}");
    }
    list
}

#[test]
fn deep_schemas_end_as_json() {
    let nested = |wrap: fn(Value) -> Value| {
        let deepest = json!({"type": "string", "maxLength": 77});
        let schema = (0..60).fold(deepest, |inner, _| wrap(inner));
        json!({"properties": {"p": schema}})
    };
    check(
        &nested(|inner| json!({"type": "array", "items": inner})),
        &["[[[[", "\"maxLength\":77"],
    );
    check(
        &nested(|inner| json!({"type": "object", "properties": {"q": inner}})),
        &["\"maxLength\":77"],
    );
    check(
        &nested(
            |inner| json!({"type": "object", "properties": {"q": inner}, "description": "One of these."}),
        ),
        &["\"maxLength\":77"],
    );
    check(
        &nested(|inner| json!({"anyOf": [{"type": "null"}, {"type": "array", "items": inner}]})),
        &["\"maxLength\":77"],
    );
}

/// Definitions that refer to each other, once and twice.
#[test]
fn definitions_are_written_once() {
    for uses in [1, 2] {
        let members = |next: usize| {
            let one = |name: &&str| {
                (
                    (*name).to_owned(),
                    json!({"$ref": format!("#/$defs/d{next}")}),
                )
            };
            let names = &["left", "right"][..uses];
            names.iter().map(one).collect::<Map<String, Value>>()
        };
        let mut definitions: Map<String, Value> = (0..60)
            .map(|at| {
                (
                    format!("d{at}"),
                    json!({"type": "object", "properties": members(at + 1)}),
                )
            })
            .collect();
        definitions.insert("d60".to_owned(), json!({"type": "string", "maxLength": 77}));
        let list = check(
            &json!({"properties": members(0), "$defs": definitions}),
            &["string <=77 chars"],
        );
        assert_eq!(list.matches("77").count(), 1);
    }
}

#[test]
fn schemas_that_lead_to_themselves_end() {
    check(
        &json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}}),
        &["a = a\n"],
    );
    check(
        &json!({"properties": {"a": {"$ref": "#/$defs/a"}}, "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/a"}, {"type": "string"}]}}}),
        &["a = a | string"],
    );
    check(
        &json!({"properties": {"a": {"$ref": "#"}}}),
        &["\"$ref\":\"#\""],
    );
    check(
        &json!({"properties": {"a": {"not": {"$ref": "#/$defs/a"}}}, "$defs": {"a": {"contains": {"$ref": "#/$defs/a"}}}}),
        &["a = {\"contains\":{\"$ref\":\"#/$defs/a\"}}"],
    );
}

#[test]
fn wide_schemas_stay_as_wide() {
    let members: Map<String, Value> = (0..5000)
        .map(|at| {
            (
                format!("member_{at}"),
                json!({"type": "string", "maxLength": at}),
            )
        })
        .collect();
    let names: Vec<&String> = members.keys().collect();
    let list = check(
        &json!({"required": names, "properties": members}),
        &["member_4999: string <=4999 chars"],
    );
    assert_eq!(list.lines().count(), 5001);
    let unknown: Map<String, Value> = (0..5000)
        .map(|at| (format!("keyword_{at}"), json!(at)))
        .collect();
    check(
        &json!({"properties": {"p": unknown}}),
        &["\"keyword_4999\":4999"],
    );
}

/// Definitions that were not checked are listed as well.
#[test]
fn invalid_schemas_are_listed() {
    for (schema, expected) in [
        (json!(5), "p: schema 5"),
        (json!({"type": "text"}), "p: {\"type\":\"text\"}"),
        (json!({"type": []}), "p: {\"type\":[]}"),
        (
            json!({"type": ["string", "string"]}),
            "p: {\"type\":[\"string\",\"string\"]}",
        ),
        (json!({"enum": []}), "p: {\"enum\":[]}"),
        (json!({"anyOf": []}), "p: {\"anyOf\":[]}"),
        (
            json!({"type": "object", "properties": []}),
            "p: object & {\"properties\":[]}",
        ),
        (
            json!({"type": "object", "required": true}),
            "p: object & {\"required\":true}",
        ),
        (
            json!({"type": "integer", "minimum": "1"}),
            "p: integer & {\"minimum\":\"1\"}",
        ),
        (
            json!({"type": "array", "minItems": -1}),
            "p: [any] & {\"minItems\":-1}",
        ),
        (
            json!({"type": "string", "description": 5}),
            "p: string & {\"description\":5}",
        ),
    ] {
        let tool =
            ToolSpec::new("tool").parameter(plaincall_tool::Parameter::from_schema("p", schema));
        let list = listed([&tool], &Dialect::block());
        assert_eq!(list.lines().nth(1), Some(expected), "{list}");
    }
}
