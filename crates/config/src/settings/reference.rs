//! The JSON Schema and Markdown reference of the settings, generated from the types and their comments.

use std::fmt::Write as _;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use super::Settings;
use crate::node::child;

/// Returns the JSON Schema of a configuration file.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|it| it.inline_subschemas = true);
    let mut schema = settings.into_generator().into_root_schema_for::<Settings>();
    schema.insert("title".to_owned(), "The configuration of Plaincall".into());
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema
}

/// Removes what applies to the Rust types but not to TOML: null, integer widths and empty defaults.
fn tidy(schema: &mut Value) {
    match schema {
        Value::Array(list) => list.iter_mut().for_each(tidy),
        Value::Object(object) => {
            let is_null = |choice: &Value| choice == "null" || choice["type"] == "null";
            for key in ["type", "anyOf"] {
                let Some(Value::Array(choices)) = object.get_mut(key) else {
                    continue;
                };
                choices.retain(|choice| !is_null(choice));
                let [only] = choices.as_slice() else {
                    continue;
                };
                match only.clone() {
                    Value::Object(only) => {
                        object.remove(key);
                        for (key, value) in only {
                            object.entry(key).or_insert(value);
                        }
                    }
                    only => drop(object.insert(key.to_owned(), only)),
                }
            }
            object.retain(|key, value| match key.as_str() {
                "format" => value != "uint32" && value != "double",
                "default" => false,
                _ => true,
            });
            object.values_mut().for_each(tidy);
        }
        _ => {}
    }
}

/// Returns the pointers of the single values that environment variables can set: at the top level and in tables with fixed keys.
pub fn variables() -> Vec<String> {
    let schema = schema();
    let mut variables = Vec::new();
    for (name, part) in properties(&schema) {
        let pointer = child("", name);
        variables.extend(is_single(part).then(|| pointer.clone()));
        let inner = properties(part).filter(|(_, part)| is_single(part));
        variables.extend(inner.map(|(key, _)| child(&pointer, key)));
    }
    variables
}

fn is_single(part: &Value) -> bool {
    !matches!(part["type"].as_str(), Some("object" | "array"))
}

/// Returns the reference as Markdown: every key with its type and meaning.
pub fn reference() -> String {
    let mut text = include_str!("reference.md").to_owned();
    let schema = schema();
    keys(&mut text, &schema, false);
    for (name, part) in properties(&schema) {
        table(&mut text, name, part);
    }
    text
}

fn properties(part: &Value) -> impl Iterator<Item = (&String, &Value)> {
    let properties = part.get("properties").and_then(Value::as_object);
    properties.into_iter().flat_map(Map::iter)
}

/// Returns the heading and schema of a table, of tables by name, or of an array of tables.
fn inside<'s>(name: &str, part: &'s Value) -> Option<(String, &'s Value)> {
    let candidates = [
        (format!("[{name}]"), part),
        (format!("[{name}.NAME]"), &part["additionalProperties"]),
        (format!("[[{name}]]"), &part["items"]),
    ];
    candidates
        .into_iter()
        .find(|(_, part)| part.get("properties").is_some())
}

fn table(text: &mut String, name: &str, part: &Value) {
    let Some((heading, inner)) = inside(name, part) else {
        return;
    };
    let _ = writeln!(text, "\n## `{heading}`\n");
    for paragraph in description(part).split("\n\n") {
        let _ = writeln!(text, "{}\n", one_line(paragraph));
    }
    // The tables of an agent have the keys of those at the top level.
    let is_agent = name == "agents";
    keys(text, inner, is_agent);
    for (key, part) in properties(inner).filter(|_| !is_agent) {
        table(text, &format!("{name}.{key}"), part);
    }
}

/// Writes the keys, also those of tables or not.
fn keys(text: &mut String, part: &Value, has_tables: bool) {
    let is_shown = |(name, part): &(&String, &Value)| has_tables || inside(name, part).is_none();
    for (name, part) in properties(part).filter(is_shown) {
        let (kind, about) = (kind(part), one_line(description(part)));
        let _ = writeln!(text, "- `{name}` ({kind}): {about}");
        let words = part["oneOf"].as_array();
        let words = words.or(part["items"]["oneOf"].as_array());
        for word in words.into_iter().flatten() {
            let (word, about) = (&word["const"], one_line(description(word)));
            let _ = writeln!(text, "  - `{word}`: {about}");
        }
    }
}

/// Describes the type of a value.
fn kind(part: &Value) -> String {
    let number = |key: &str| part.get(key).map_or(String::new(), Value::to_string);
    let types = &part["type"];
    match (part["format"].as_str(), types.as_str()) {
        (Some("time"), _) => "a duration".to_owned(),
        (Some("size"), _) => "a size".to_owned(),
        (Some("path"), _) => "a path".to_owned(),
        (_, Some("object")) if part["additionalProperties"].is_object() => {
            "a table of strings".to_owned()
        }
        (_, Some("object")) => "a table".to_owned(),
        (_, Some("array")) if part["maxItems"] == 2 => "an array of two strings".to_owned(),
        (_, Some("array")) if part["items"].get("oneOf").is_some() => {
            "an array of the values below".to_owned()
        }
        (_, Some("array")) => {
            let item = kind(&part["items"]);
            format!("an array of {}s", item.trim_start_matches("a "))
        }
        (_, Some("integer")) if part.get("maximum").is_none() => {
            format!("an integer of at least {}", number("minimum"))
        }
        (_, Some(kind @ ("integer" | "number"))) => {
            let kind = if kind == "integer" {
                "an integer"
            } else {
                "a number"
            };
            let (least, most) = (number("minimum"), number("maximum"));
            format!("{kind} from {least} to {most}")
        }
        (_, Some("boolean")) => "true or false".to_owned(),
        _ if types.is_array() => "a string or an array of strings".to_owned(),
        _ if part.get("oneOf").is_some() => "one of the values below".to_owned(),
        _ if part["const"] == false => "false".to_owned(),
        _ => match part["anyOf"].as_array() {
            Some(choices) => choices.iter().map(kind).collect::<Vec<_>>().join(" or "),
            None => "a string".to_owned(),
        },
    }
}

fn description(part: &Value) -> &str {
    part["description"].as_str().unwrap_or_default()
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
