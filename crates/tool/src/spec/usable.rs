//! Lists of tool definitions in which some have errors (`spec/gateway.md` 1).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::Schema;
use crate::SpecError;
use crate::ToolSpec;
use crate::json_text;
use crate::pointer::unescape;
use crate::spec::definitions::{SCHEMAS, tool, with_examples};

/// The number of attempts to relax a schema before it accepts any object.
const ROUNDS: usize = 32;

/// The usable tools of a list of definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct UsableTools {
    /// The tools in order, with distinct names.
    pub tools: Vec<ToolSpec>,
    /// Whether one of the definitions is `strict`.
    pub is_strict: bool,
    /// The definitions with errors, in order.
    pub changed: Vec<ChangedTool>,
}

/// A definition with an error.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChangedTool {
    /// The name in the definition.
    pub name: Option<String>,
    /// Whether the tool is dropped. Otherwise it has a relaxed schema.
    pub is_dropped: bool,
    /// The first error, with its location in the list.
    pub reason: SpecError,
}

/// Reads definitions of functions, each from its JSON text, like
/// [`read_tool_definitions`](crate::definitions::read_tool_definitions). An error in one definition does not affect the
/// others.
///
/// A tool with an error gets a relaxed schema: the invalid part becomes `true` or is removed. If its name is unusable
/// or a duplicate, the tool is dropped.
pub fn read_usable_tools<'t>(definitions: impl IntoIterator<Item = &'t str>) -> UsableTools {
    let mut usable = UsableTools::default();
    let mut names = HashSet::new();
    for (index, text) in definitions.into_iter().enumerate() {
        let at = format!("/{index}");
        let (value, error) = parsed(text, &at);
        let read = match (tool(&value, &at), error) {
            (Ok(tool), error) => Ok((tool, error)),
            (Err(reason), error) => match relaxed(&value) {
                Some(tool) => Ok((tool, error.or(Some(reason)))),
                None => Err(error.unwrap_or(reason)),
            },
        };
        let read = read.and_then(|(tool, reason)| {
            if names.insert(tool.name.clone()) {
                return Ok((tool, reason));
            }
            let message = format!("an earlier tool is also named `{}`", tool.name);
            Err(SpecError::new(at, message))
        });
        let (is_dropped, reason) = match read {
            Ok((tool, reason)) => {
                let fields = fields(&value);
                let is_strict =
                    fields.is_some_and(|fields| fields.get("strict") == Some(&true.into()));
                usable.is_strict |= is_strict;
                usable.tools.push(tool);
                (false, reason)
            }
            Err(reason) => (true, Some(reason)),
        };
        if let Some(reason) = reason {
            let name = fields(&value).and_then(|fields| fields.get("name"));
            usable.changed.push(ChangedTool {
                name: name.and_then(Value::as_str).map(str::to_owned),
                is_dropped,
                reason,
            });
        }
    }
    usable
}

/// Parses a definition, and reports a loss: a duplicate key in an object, or a digit of a number.
fn parsed(text: &str, at: &str) -> (Value, Option<SpecError>) {
    match json_text::parse(text) {
        Ok(value) => (value, None),
        Err(message) => {
            let value = serde_json::from_str(text).unwrap_or_default();
            (value, Some(SpecError::new(at, message)))
        }
    }
}

fn fields(value: &Value) -> Option<&Map<String, Value>> {
    let is_function = match value.get("type") {
        None | Some(Value::Null) => true,
        Some(kind) => kind == "function",
    };
    let fields = value.get("function").unwrap_or(value);
    fields.as_object().filter(|_| is_function)
}

/// Returns the tool with the usable parts of its definition; `None` if no call can express its name.
fn relaxed(value: &Value) -> Option<ToolSpec> {
    let fields = fields(value)?;
    let text = |key: &str| fields.get(key).and_then(Value::as_str);
    let bare = ToolSpec::new(text("name")?).describe(text("description").unwrap_or_default());
    bare.check().ok()?;
    let with = |schema: &Value| {
        let tool = bare.clone().parameters_from_schema(schema)?;
        tool.check().map(|()| tool)
    };
    let given = SCHEMAS.iter().find_map(|key| fields.get(*key));
    let mut schema = given.cloned().unwrap_or_default();
    if let Ok(with_examples) = with_examples(&schema, fields, "") {
        schema = with_examples.into_owned();
    }
    for _ in 0..ROUNDS {
        let mut errors = Schema::new(schema.clone()).errors();
        if errors.is_empty() {
            match with(&schema) {
                Ok(tool) => return Some(tool),
                Err(error) => errors.push(error),
            }
        }
        // Later items of a list are removed first, so that locations stay valid.
        let relaxed = errors
            .iter()
            .rev()
            .filter(|error| relax(&mut schema, &error.at));
        if relaxed.count() == 0 {
            break;
        }
    }
    with(&json!({"type": "object", "additionalProperties": true})).ok()
}

/// Relaxes a schema at an error: the invalid part becomes `true`, which accepts any value, or is removed. Returns
/// whether it changed.
fn relax(schema: &mut Value, at: &str) -> bool {
    // A parameter with a name that no call can express.
    let (at, is_name) = match at.strip_prefix("/parameters/") {
        Some(name) => (format!("/properties/{name}"), true),
        None => (at.to_owned(), false),
    };
    let Some((place, key)) = at.rsplit_once('/') else {
        return false;
    };
    let key = &*unescape(key);
    match schema.pointer_mut(place) {
        Some(Value::Object(keywords)) => {
            if key == "required" && keep_declared(keywords) {
                return true;
            }
            let name = keywords.get(key).filter(|_| key == "type");
            if let Some(meant) = name.and_then(Value::as_str).and_then(type_name) {
                keywords.insert(key.to_owned(), meant.into());
                return true;
            }
            match keywords.get_mut(key) {
                None => return false,
                Some(wrong) if is_name || wrong.is_boolean() => {
                    keywords.shift_remove(key);
                }
                Some(wrong) => *wrong = true.into(),
            }
            true
        }
        Some(Value::Array(schemas)) => {
            let wrong = key
                .parse()
                .ok()
                .and_then(|index: usize| schemas.get_mut(index));
            let wrong = wrong.filter(|wrong| **wrong != true);
            wrong.map(|wrong| *wrong = true.into()).is_some()
        }
        _ => false,
    }
}

/// Returns the type of JSON Schema that a name of Python, or one in another case, means.
fn type_name(name: &str) -> Option<&'static str> {
    let meant = match name.to_ascii_lowercase().as_str() {
        "str" | "string" => "string",
        "int" | "integer" => "integer",
        "float" | "number" => "number",
        "bool" | "boolean" => "boolean",
        "dict" | "object" => "object",
        "list" | "tuple" | "array" => "array",
        _ => return None,
    };
    (meant != name).then_some(meant)
}

/// Removes names from `required` that are not declared beside it; returns whether there were any.
fn keep_declared(keywords: &mut Map<String, Value>) -> bool {
    let Some(Value::Array(mut required)) = keywords.get("required").cloned() else {
        return false;
    };
    let before = required.len();
    let properties = keywords.get("properties");
    required.retain(|name| {
        let name = name.as_str().unwrap_or_default();
        properties.is_some_and(|properties| properties.get(name).is_some())
    });
    let is_less = required.len() < before;
    keywords.insert("required".to_owned(), required.into());
    is_less
}
