//! The schema of a configuration: what a file is checked against, what `plaincall config --schema` prints, and what the
//! reference is made of.

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};

use crate::config::contents::Contents;

/// Where the schema of this version can be named from.
const TITLE: &str = "The configuration of Plaincall";

/// What a schema says, besides the standard's words, about a key that a project's file may not have.
const PROJECT: &str = "x-project";

/// The schema, with the descriptions that people read.
pub fn schema() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<Contents>();
    schema.insert("title".to_owned(), TITLE.into());
    let mut schema = schema.to_value();
    tidy(&mut schema);
    schema
}

/// Takes out what is true of the types here and not of TOML: null, and how wide a number is.
fn tidy(schema: &mut Value) {
    let Value::Object(object) = schema else {
        if let Value::Array(list) = schema {
            list.iter_mut().for_each(tidy);
        }
        return;
    };
    if let Some(Value::Array(types)) = object.get_mut("type") {
        types.retain(|name| name != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            object.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Array(choices)) = object.get_mut("anyOf") {
        choices.retain(|choice| choice.get("type").is_none_or(|name| name != "null"));
        if let [Value::Object(only)] = choices.as_slice() {
            let only = only.clone();
            object.remove("anyOf");
            for (key, value) in only {
                object.entry(key).or_insert(value);
            }
        }
    }
    let is_width = |format: &Value| matches!(format.as_str(), Some("uint32" | "double"));
    if object.get("format").is_some_and(is_width) {
        object.remove("format");
    }
    // What a key is by itself stands in the reference's words.
    if object.get("default").is_some_and(is_nothing) {
        object.remove("default");
    }
    object.values_mut().for_each(tidy);
}

fn is_nothing(value: &Value) -> bool {
    match value {
        Value::Null | Value::Object(_) => true,
        Value::Array(list) => list.is_empty(),
        _ => false,
    }
}

/// A part of the schema.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part<'s>(pub(crate) &'s Value);

/// What a part of the schema asks for.
#[derive(Debug)]
pub(crate) enum Shape<'s> {
    /// A table with these keys.
    Table(&'s Map<String, Value>),
    /// A table with any keys, and what each holds; nothing if that may be anything.
    Names(Option<Part<'s>>),
    /// A list of such values.
    List(Part<'s>),
    /// One of these words.
    Words(&'s [Value]),
    /// One of these.
    Choice(&'s [Value]),
    /// Seconds, or a number with a unit.
    Time,
    /// A text.
    Text,
    /// A path, which is relative to the file that names it.
    Path,
    /// A whole number from this on.
    Count(u64),
    /// A number between these.
    Number(f64, f64),
    /// True or false.
    Truth,
    /// False.
    No,
}

impl<'s> Part<'s> {
    fn text(self, key: &str) -> Option<&'s str> {
        self.0.get(key)?.as_str()
    }

    /// What people read about it.
    pub(crate) fn description(self) -> &'s str {
        self.text("description").unwrap_or_default()
    }

    /// What it is if nothing is said.
    pub(crate) fn default(self) -> Option<&'s Value> {
        self.0.get("default")
    }

    /// Whether only a user's own file may say it.
    pub(crate) fn is_for_users_alone(self) -> bool {
        self.text(PROJECT) == Some("never")
    }

    /// The keys that must be there.
    pub(crate) fn required(self) -> impl Iterator<Item = &'s str> {
        let keys = self.0.get("required").and_then(Value::as_array);
        keys.into_iter().flatten().filter_map(Value::as_str)
    }

    pub(crate) fn shape(self) -> Shape<'s> {
        let schema = self.0;
        if let Some(Value::Object(keys)) = schema.get("properties") {
            return Shape::Table(keys);
        }
        let list = |key| schema.get(key).and_then(Value::as_array);
        if let Some(words) = list("oneOf") {
            return Shape::Words(words);
        }
        match (self.text("format"), self.text("type")) {
            (Some("time"), _) => return Shape::Time,
            (Some("path"), _) => return Shape::Path,
            _ => {}
        }
        if let Some(choices) = list("anyOf") {
            return Shape::Choice(choices);
        }
        let number = |key| schema.get(key).and_then(Value::as_f64);
        match self.text("type") {
            Some("object") => Shape::Names(
                schema
                    .get("additionalProperties")
                    .filter(|inner| inner.is_object())
                    .map(Part),
            ),
            Some("array") => Shape::List(Self(schema.get("items").unwrap_or(&Value::Null))),
            Some("integer") => {
                let least = schema.get("minimum").and_then(Value::as_u64);
                Shape::Count(least.unwrap_or(0))
            }
            Some("number") => Shape::Number(
                number("minimum").unwrap_or(f64::MIN),
                number("maximum").unwrap_or(f64::MAX),
            ),
            Some("boolean") => Shape::Truth,
            Some(_) => Shape::Text,
            None => Shape::No,
        }
    }

    /// What must stand there, in words.
    pub(crate) fn wanted(self) -> String {
        match self.shape() {
            Shape::Table(_) | Shape::Names(_) => "a table".to_owned(),
            Shape::List(inner) => match inner.shape() {
                Shape::Path => "a list of paths".to_owned(),
                Shape::Table(_) => "a list of tables".to_owned(),
                _ => match self.0.get("maxItems").and_then(Value::as_u64) {
                    Some(2) => "a list of two texts".to_owned(),
                    _ => "a list of texts".to_owned(),
                },
            },
            Shape::Words(words) => {
                let words = words.iter().map(|word| format!("`{}`", name_of(word)));
                any_of(words)
            }
            Shape::Choice(choices) => any_of(choices.iter().map(|choice| Part(choice).wanted())),
            Shape::Time => "a time above 0: seconds, such as 10, or a number with its unit, such as \"500ms\", \"10s\", \"2m\", \"1h\"".to_owned(),
            Shape::Text => "a text".to_owned(),
            Shape::Path => "a path".to_owned(),
            Shape::Count(least) => format!("a whole number from {least} on"),
            Shape::Number(least, most) => format!("a number from {least} to {most}"),
            Shape::Truth => "true or false".to_owned(),
            Shape::No => "false".to_owned(),
        }
    }
}

/// The word that a schema of a word names.
pub(crate) fn name_of(word: &Value) -> &str {
    let name = word.get("const").and_then(Value::as_str);
    name.unwrap_or_default()
}

fn any_of(words: impl Iterator<Item = String>) -> String {
    let words: Vec<String> = words.collect();
    match words.as_slice() {
        [front @ .., last] if !front.is_empty() => format!("{} or {last}", front.join(", ")),
        _ => words.concat(),
    }
}
