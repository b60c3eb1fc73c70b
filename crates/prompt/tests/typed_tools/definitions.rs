//! The definition of a tool from a type.

use std::collections::{BTreeMap, HashMap};

use plaincall_tool::ToolSpec;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

/// Adds numbers,
/// whole ones.
///
/// It keeps all digits:
/// - of the first
/// - of the second
#[derive(Deserialize, JsonSchema)]
#[schemars(title = "Adder", example = json!({"first": 1, "second": 2}))]
#[expect(dead_code, reason = "only its schema matters")]
struct Add {
    /// The first number,
    /// negative or not.
    #[schemars(example = 5, example = -5)]
    first: i64,
    #[serde(default = "two")]
    #[schemars(range(max = 100))]
    second: u32,
    /// How it is rounded.
    round: Round,
    third: Option<f32>,
}

fn two() -> u32 {
    2
}

/// A way to round.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Round {
    /// To the next whole number above,
    /// always.
    Up,
    Down,
}

#[test]
fn prompts_have_comments_defaults_and_examples_but_no_type_names() {
    let tool = ToolSpec::of::<Add>("add");
    assert_eq!(
        tool.description,
        "Adds numbers, whole ones.\n\nIt keeps all digits:\n- of the first\n- of the second"
    );
    let expected = json!({
        "type": "object",
        "properties": {
            "first": {"description": "The first number, negative or not.", "type": "integer", "examples": [5, -5]},
            "second": {"type": "integer", "minimum": 0, "maximum": 100, "default": 2},
            "round": {"description": "How it is rounded.", "$ref": "#/$defs/Round"},
            "third": {"type": ["number", "null"]},
        },
        "required": ["first", "round"],
        "examples": [{"first": 1, "second": 2}],
        "$defs": {"Round": {"description": "A way to round.", "oneOf": [
            {"type": "string", "enum": ["down"]},
            {"description": "To the next whole number above, always.", "type": "string", "const": "up"},
        ]}},
    });
    assert_eq!(tool.to_schema(), expected);
    let shown: Vec<(&str, &str, bool)> = tool
        .parameters()
        .iter()
        .map(|one| (one.name.as_str(), one.description.as_str(), one.required))
        .collect();
    let round = ("round", "How it is rounded.", true);
    let first = ("first", "The first number, negative or not.", true);
    assert_eq!(
        shown,
        [first, ("second", "", false), round, ("third", "", false)]
    );
    // The order of the source is the order of the parameters.
    let described = tool.describe("Other words.");
    assert_eq!(described.description, "Other words.");
}

fn description<T: JsonSchema>(expected: &str) {
    assert_eq!(ToolSpec::of::<T>("t").description, expected);
}

#[test]
fn lines_of_comments_are_joined_where_they_are_prose() {
    /// One
    /// two.
    ///
    /// 1. three
    /// 2. four
    ///    five
    ///
    /// > six
    #[derive(JsonSchema)]
    struct Commented {}
    description::<Commented>("One two.\n\n1. three\n2. four\n   five\n\n> six");
    /// One
    /// two.
    ///
    /// ```text
    /// seven
    ///
    /// eight
    /// ```
    #[derive(JsonSchema)]
    struct Coded {}
    description::<Coded>("One\ntwo.\n\n```text\nseven\n\neight\n```");
    /// 2024 was
    /// 2025.5 too\
    /// then
    #[derive(JsonSchema)]
    struct Years {}
    description::<Years>("2024 was\n2025.5 too\\\nthen");
    #[derive(JsonSchema)]
    struct Silent {}
    description::<Silent>("");
}

/// Checks the schema of a type, and the usage of its emoji calls.
fn form<T: JsonSchema>(usage: &str, schema: &Value) {
    let tool = ToolSpec::of::<T>("t");
    assert_eq!(tool.check(), Ok(()), "{schema}");
    assert_eq!(tool.usage().to_string(), usage, "{schema}");
    assert_eq!(&tool.to_schema(), schema);
}

#[test]
fn types_that_are_not_structs() {
    let nothing =
        json!({"type": "object", "properties": {}, "required": [], "additionalProperties": false});
    form::<()>("t", &nothing);
    let anything = json!({"type": "object", "additionalProperties": true});
    form::<Value>("t (body: one JSON object)", &anything);
    form::<HashMap<String, Value>>("t (body: one JSON object)", &anything);
    form::<BTreeMap<String, bool>>(
        "t (body: one JSON object)",
        &json!({"type": "object", "additionalProperties": {"type": "boolean"}}),
    );
    form::<Box<Settings>>(
        "t name...",
        &json!({"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}),
    );
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Settings {
    name: String,
}

/// A node.
#[derive(JsonSchema)]
#[schemars(rename = "a/node", example = json!({"next": null}))]
#[expect(dead_code, reason = "only its schema matters")]
struct Node {
    next: Option<Box<Node>>,
    all: Vec<Node>,
}

#[test]
fn a_type_that_holds_itself_has_a_name() {
    let tool = ToolSpec::of::<Node>("t");
    assert_eq!(tool.description, "A node.");
    let node = json!({"$ref": "#/$defs/a~1node"});
    let expected = json!({
        "$ref": "#/$defs/a~1node",
        "$defs": {"a/node": {
            "type": "object",
            "properties": {
                "next": {"anyOf": [node, {"type": "null"}]},
                "all": {"type": "array", "items": node},
            },
            "required": ["all"],
        }},
        "examples": [{"next": null}],
    });
    assert_eq!(tool.to_schema(), expected);
    assert_eq!(tool.check(), Ok(()));
    assert_eq!(tool.parameters().len(), 2);
}

#[derive(JsonSchema)]
#[expect(dead_code, reason = "only its schema matters")]
struct Unspellable {
    #[serde(rename = "first name")]
    name: String,
}

#[derive(JsonSchema)]
#[serde(tag = "kind")]
#[expect(dead_code, reason = "only its schema matters")]
enum Forms {
    One { width: u8 },
    Two { height: u8 },
}

fn refused<T: JsonSchema>(at: &str, part: &str) {
    let error = ToolSpec::of::<T>("t")
        .check()
        .expect_err("a type that is refused");
    assert_eq!(error.at, at, "{error}");
    assert!(error.message.contains(part), "{error}");
}

#[test]
fn other_types_than_objects_are_rejected() {
    refused::<Vec<u8>>("/type", "but this is a list: ");
    refused::<String>("/type", "an object with named fields, but this is a string");
    refused::<(u8, u8)>("/type", "a list");
    refused::<Option<u8>>("/type", "an integer from 0 to 255 or null");
    refused::<Unspellable>("/parameters/first name", "space or tab");
}

/// Arguments that the line of an emoji call cannot name are written in JSON.
#[test]
fn several_forms_do_not_fit_on_a_line() {
    let tool = ToolSpec::of::<Forms>("t");
    assert_eq!(tool.check(), Ok(()));
    assert_eq!(tool.usage().to_string(), "t (body: one JSON object)");
    let names: Vec<(&str, bool)> = tool
        .parameters()
        .iter()
        .map(|one| (one.name.as_str(), one.required))
        .collect();
    assert_eq!(names, [("kind", true), ("width", false), ("height", false)]);
}
