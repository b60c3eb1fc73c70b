//! Definitions of tools of which some cannot be used as they are (`spec/gateway.md` 1).

use std::collections::HashSet;

use serde_json::{Map, Value, json};

use crate::json_text;
use crate::pointer::unescape;
use crate::schema::Schema;
use crate::spec_error::SpecError;
use crate::tool::ToolSpec;
use crate::tool::definitions::{SCHEMAS, tool};

/// How often a schema is made looser until it takes any object.
const ROUNDS: usize = 32;

/// The tools of a list of definitions.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UsableTools {
    /// The tools in their order, with different names.
    pub tools: Vec<ToolSpec>,
    /// Whether one of their definitions is `strict`.
    pub is_strict: bool,
    /// The definitions that cannot be used as they are, in their order.
    pub changed: Vec<ChangedTool>,
}

/// A definition that cannot be used as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedTool {
    /// The name that it gives.
    pub name: Option<String>,
    /// Whether the tool is dropped. If not, it has a looser schema.
    pub is_dropped: bool,
    /// The first mistake, with its place in the list.
    pub reason: SpecError,
}

/// Reads definitions of functions, each from its JSON text, like
/// [`read_tool_definitions`](crate::definitions::read_tool_definitions). But an odd definition does not fail the others.
///
/// A tool that cannot be used as it is gets a looser schema if its name can be written: what is wrong in the schema
/// becomes `true` or is removed. Otherwise the tool is dropped, as is one with the name of an earlier one.
pub fn read_usable_tools<'t>(definitions: impl IntoIterator<Item = &'t str>) -> UsableTools {
    let mut usable = UsableTools::default();
    let mut names = HashSet::new();
    for (index, text) in definitions.into_iter().enumerate() {
        let at = format!("/{index}");
        let (value, mistake) = parsed(text, &at);
        let read = match (tool(&value, &at), mistake) {
            (Ok(tool), mistake) => Ok((tool, mistake)),
            (Err(reason), mistake) => match looser(&value) {
                Some(tool) => Ok((tool, mistake.or(Some(reason)))),
                None => Err(mistake.unwrap_or(reason)),
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

/// A definition, and what is lost of it: a key that stands twice in an object, or a digit of a number.
fn parsed(text: &str, at: &str) -> (Value, Option<SpecError>) {
    match json_text::parse(text) {
        Ok(value) => (value, None),
        Err(message) => {
            let value = serde_json::from_str(text).unwrap_or_default();
            (value, Some(SpecError::new(at, message)))
        }
    }
}

/// The fields of a function; those of a tool of another type mean something else.
fn fields(value: &Value) -> Option<&Map<String, Value>> {
    let is_function = match value.get("type") {
        None | Some(Value::Null) => true,
        Some(kind) => kind == "function",
    };
    let fields = value.get("function").unwrap_or(value);
    fields.as_object().filter(|_| is_function)
}

/// The tool with as much of its definition as can be used; nothing if no call can spell its name.
fn looser(value: &Value) -> Option<ToolSpec> {
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
    for _ in 0..ROUNDS {
        let mut mistakes = Schema::new(schema.clone()).mistakes();
        if mistakes.is_empty() {
            match with(&schema) {
                Ok(tool) => return Some(tool),
                Err(mistake) => mistakes.push(mistake),
            }
        }
        // What comes later in a list is removed first, so places stay right.
        let loosened = mistakes
            .iter()
            .rev()
            .filter(|mistake| loosen(&mut schema, &mistake.at));
        if loosened.count() == 0 {
            break;
        }
    }
    with(&json!({"type": "object", "additionalProperties": true})).ok()
}

/// Makes a schema looser where something is wrong: that becomes `true`, which is a schema that takes anything, or goes.
/// Whether there was something.
fn loosen(schema: &mut Value, at: &str) -> bool {
    // A parameter whose name no call can spell.
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
            match keywords.get_mut(key) {
                None => return false,
                Some(wrong) if is_name || *wrong == true => {
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

/// Removes names from `required` that are not declared beside it; whether there were any.
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
