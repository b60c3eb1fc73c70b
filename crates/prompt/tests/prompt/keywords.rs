//! Changing any keyword with constraints changes the list of tools, wherever it appears.

use std::collections::BTreeSet;

use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use serde_json::{Value, json};

use crate::prompt::{folder, listed, tool_of, tool_with};

/// All keywords of JSON Schema, of any draft, except those that name schemas or do not constrain values.
const KEYWORDS: &[&str] = &[
    "type",
    "enum",
    "const",
    "nullable",
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "items",
    "prefixItems",
    "additionalItems",
    "contains",
    "minContains",
    "maxContains",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern",
    "format",
    "allOf",
    "anyOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "dependencies",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contentEncoding",
    "contentMediaType",
    "contentSchema",
    "$ref",
    "default",
    "examples",
    "description",
    "deprecated",
    "readOnly",
    "writeOnly",
    "discriminator",
];

/// The pairs of the table.
pub(crate) fn pairs() -> Vec<(Value, Value)> {
    let text = std::fs::read_to_string(folder().join("keywords.txt")).expect("the table");
    let rows = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'));
    rows.map(|row| {
        let (one, other) = row.split_once(" <> ").unwrap_or_else(|| panic!("{row}"));
        let read =
            |text| serde_json::from_str(text).unwrap_or_else(|error| panic!("{row}: {error}"));
        (read(one), read(other))
    })
    .collect()
}

/// Tools with the schema, one for each kind of location.
pub(crate) fn wrapped(schema: &Value) -> Vec<Option<ToolSpec>> {
    let beside = json!({"description": "Any."});
    let text = json!({"type": "string", "maxLength": 3});
    let places = [
        schema.clone(),
        json!({"type": "array", "items": schema}),
        json!({"items": [text, schema]}),
        json!({"type": "array", "prefixItems": [schema], "items": schema}),
        json!({"type": "object", "properties": {"q": schema}, "required": ["q"]}),
        json!({"type": "object", "additionalProperties": schema}),
        json!({"patternProperties": {"^a/b": schema}}),
        json!({"anyOf": [text, schema]}),
        json!({"oneOf": [schema, {"type": "null"}], "description": "One of them."}),
        json!({"allOf": [schema, beside]}),
        json!({"allOf": [schema]}),
        json!({"not": schema}),
        json!({"contains": schema}),
        json!({"if": schema, "then": {"type": "string"}}),
        json!({"type": "object", "properties": {"q": {"type": "array", "items": {"anyOf": [schema, text]}}}}),
    ];
    let mut tools: Vec<_> = places
        .iter()
        .map(|place| tool_with(place, &definitions()))
        .collect();
    let reference = json!({"$ref": "#/$defs/one"});
    for uses in [
        reference.clone(),
        json!({"properties": {"q": reference, "r": {"items": reference}}}),
        json!({"not": reference, "type": "string"}),
    ] {
        let has_references = schema.to_string().contains("$ref");
        let mut all = if has_references {
            definitions()
        } else {
            json!({})
        };
        all["one"] = schema.clone();
        tools.push(tool_with(&uses, &all));
    }
    tools
}

/// The targets of references in the table.
fn definitions() -> Value {
    json!({"a": {"type": "string"}, "b": {"type": "integer"},
        "true": {"type": "string"}, "string": {"type": "integer"},
        "tree": {"type": "object", "properties": {"next": {"$ref": "#/$defs/tree"}}},
        "list": {"type": "array", "items": {"$ref": "#/$defs/list"}}})
}

fn check(one: &ToolSpec, other: &ToolSpec) {
    for dialect in [Dialect::block(), Dialect::emoji()] {
        let texts = [listed([one], &dialect), listed([other], &dialect)];
        assert!(
            texts[0] != texts[1],
            "{}\n{}\nare both\n{}",
            one.schema().document(),
            other.schema().document(),
            texts[0]
        );
    }
}

#[test]
fn every_pair_differs_everywhere() {
    for (one, other) in pairs() {
        let tools = wrapped(&one).into_iter().zip(wrapped(&other));
        let tools: Vec<_> = tools
            .filter_map(|(one, other)| Some((one?, other?)))
            .collect();
        assert!(tools.len() > 10, "{one}, {other}: {} places", tools.len());
        for (one, other) in tools {
            check(&one, &other);
        }
    }
}

/// The arguments as a whole.
#[test]
fn every_pair_of_objects_differs_as_a_whole() {
    let describes_object =
        |schema: &Value| schema["type"] == "object" && !schema.to_string().contains("$ref");
    // Binding rejects undeclared arguments anyway.
    let closed = |schema: &Value| {
        let mut schema = schema.clone();
        schema["additionalProperties"].take();
        schema
    };
    let is_same = |one: &Value, other: &Value| {
        let [one, other] = [one, other].map(|schema| match schema["additionalProperties"] {
            Value::Null | Value::Bool(false) => closed(schema),
            _ => schema.clone(),
        });
        one == other
    };
    let mut count = 0;
    for (one, other) in pairs() {
        if describes_object(&one) && describes_object(&other) {
            let whole = |schema: &Value| {
                let mut schema = schema.clone();
                schema["properties"]["always"] = json!({"type": "string"});
                tool_of(&schema)
            };
            if let (false, Some(one), Some(other)) =
                (is_same(&one, &other), whole(&one), whole(&other))
            {
                check(&one, &other);
                count += 1;
            }
        }
    }
    assert!(count > 15, "{count} pairs of objects");
}

#[test]
fn the_table_has_every_keyword() {
    let mut found = BTreeSet::new();
    for (one, other) in pairs() {
        let (Some(one), Some(other)) = (one.as_object(), other.as_object()) else {
            continue;
        };
        let names = one.keys().chain(other.keys());
        let differing = names.filter(|name| one.get(*name) != other.get(*name));
        found.extend(differing.cloned());
    }
    let missing: Vec<_> = KEYWORDS
        .iter()
        .filter(|name| !found.contains(**name))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}

/// The omitted keywords, as defined in `spec/prompt.md`.
#[test]
fn omitted_keywords_change_nothing() {
    for keyword in ["title", "$schema", "$id", "$comment", "x-order"] {
        let mut schema = json!({"type": "string", "maxLength": 5});
        let list = |schema: &Value| {
            let tool = tool_with(schema, &json!({})).expect("a schema");
            listed([&tool], &Dialect::block())
        };
        let before = list(&schema);
        schema[keyword] = "https://example.com/a".into();
        assert_eq!(list(&schema), before);
    }
}
