//! A JSON object as arguments to write.

mod for_tool;

use std::fmt;

use serde_json::{Map, Value};

use crate::argument_error::quoted;
use crate::arguments::Arguments;
use crate::bind::bind_arguments;
use crate::coerce::coerce;
use crate::decimal::scalar_text;
use crate::flatten::for_tool::for_tool;
use crate::limits::Limits;
use crate::pointer::{Pointer, escape, is_index};
use crate::tool::ToolSpec;
use crate::tool::check::unusable_key;

/// What cannot be written so that it comes back the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FlattenError {
    /// The pointer to it.
    pub pointer: String,
    /// Why, in one sentence.
    pub message: String,
}

impl fmt::Display for FlattenError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "`{}`: {}", self.pointer, self.message)
    }
}

impl std::error::Error for FlattenError {}

/// A JSON object as pairs of pointer and text, in order, to be rendered as a block call (`spec/block.md` 9).
///
/// Without a tool's definition the arguments must come back the same by coercion alone; with one, by its schema: a
/// declared string may be any text, and what pointers cannot spell, such as an empty list, stands as JSON text.
///
/// ```
/// use plaincall_call::flatten;
/// use serde_json::json;
///
/// let pairs = |value: serde_json::Value| flatten(value.as_object().expect("an object"), None);
/// assert_eq!(
///     pairs(json!({"path": "a.txt", "at": {"line": 3}}))?,
///     [("path".to_owned(), "a.txt".to_owned()), ("at/line".to_owned(), "3".to_owned())]
/// );
/// assert_eq!(pairs(json!({"zip": "2134"})).unwrap_err().pointer, "zip");
/// # Ok::<(), plaincall_call::FlattenError>(())
/// ```
///
/// # Errors
/// Refuses, naming the pointer, what would come back different: a string that reads as something else, null, an empty
/// list or object, and keys that a pointer cannot spell.
pub fn flatten(
    object: &Map<String, Value>,
    tool: Option<&ToolSpec>,
) -> Result<Vec<(String, String)>, FlattenError> {
    match tool {
        None => {
            let mut pairs = Pairs::default();
            for (key, value) in object {
                let pointer = escape(key).into_owned();
                check_key(key, &pointer)?;
                pairs.add(&pointer, 1, value)?;
            }
            Ok(pairs.pairs)
        }
        Some(tool) => for_tool(object, tool),
    }
}

/// As [`flatten`] for a call of the tool, with all that is wrong with the arguments in one message, as binding says it of
/// a call that was written: unknown and missing arguments too.
///
/// ```
/// use plaincall_call::{Parameter, ParameterKind, ToolSpec, flatten_call};
/// use serde_json::json;
///
/// let tool = ToolSpec::new("greet").parameter(Parameter::new("name", ParameterKind::String));
/// let error = flatten_call(json!({"nmae": "Ada"}).as_object().expect("an object"), &tool).unwrap_err();
/// assert_eq!(
///     error,
///     "`nmae` is no parameter of greet (did you mean `name`?): it takes `name`; `name` is missing: greet cannot be called without it"
/// );
/// ```
///
/// # Errors
/// What [`flatten`] refuses, and what is wrong with the rest.
pub fn flatten_call(
    object: &Map<String, Value>,
    tool: &ToolSpec,
) -> Result<Vec<(String, String)>, String> {
    for_tool(object, tool).map_err(|error| {
        let texts = object.iter().map(|(key, value)| {
            let text = scalar_text(value).unwrap_or_else(|| value.to_string());
            (escape(key), text)
        });
        let texts: Vec<_> = texts.collect();
        let pairs = texts.iter().map(|(pointer, text)| (&**pointer, &**text));
        let bound = Arguments::from_pairs_for(tool, pairs)
            .ok()
            .and_then(|arguments| bind_arguments(tool, &arguments).err());
        let problems = bound.unwrap_or_default();
        let name = |pointer: &str| Pointer::beginning(pointer, 1).to_owned();
        let is_told = problems
            .iter()
            .any(|problem| name(&problem.pointer) == name(&error.pointer));
        let own = (!is_told).then(|| error.to_string());
        let messages = problems.into_iter().map(|problem| problem.message);
        let messages: Vec<String> = own.into_iter().chain(messages).collect();
        messages.join("; ")
    })
}

#[derive(Default)]
pub(crate) struct Pairs {
    pub(crate) pairs: Vec<(String, String)>,
    limits: Limits,
}

impl Pairs {
    pub(crate) fn push(&mut self, pointer: String, text: String) -> Result<(), FlattenError> {
        if self.pairs.len() >= self.limits.arguments {
            let message = format!("a call has at most {} arguments", self.limits.arguments);
            return Err(refuse(&pointer, message));
        }
        self.pairs.push((pointer, text));
        Ok(())
    }

    /// Adds a value; recurses as deep as a pointer may be.
    pub(crate) fn add(
        &mut self,
        pointer: &str,
        depth: usize,
        value: &Value,
    ) -> Result<(), FlattenError> {
        if depth > self.limits.depth() {
            let message = format!("a pointer has at most {} segments", self.limits.depth());
            return Err(refuse(pointer, message));
        }
        match value {
            Value::Null => Err(refuse(pointer, "null would come back as the text `null`")),
            Value::Array(items) if items.is_empty() => {
                Err(refuse(pointer, "an empty list cannot be written"))
            }
            Value::Object(members) if members.is_empty() => {
                Err(refuse(pointer, "an empty object cannot be written"))
            }
            Value::Array(items) => items.iter().enumerate().try_for_each(|(index, item)| {
                self.add(&format!("{pointer}/{index}"), depth + 1, item)
            }),
            Value::Object(members) => self.members(pointer, depth, members),
            Value::Bool(_) | Value::Number(_) | Value::String(_) => {
                let text = scalar_text(value).unwrap_or_default();
                let back = Value::from(coerce(&text));
                if back == *value {
                    self.push(pointer.to_owned(), text)
                } else {
                    let kind = if value.is_string() {
                        "the string"
                    } else {
                        "the number"
                    };
                    Err(refuse(
                        pointer,
                        format!(
                            "{kind} {} would come back as {back}",
                            quoted(&value.to_string())
                        ),
                    ))
                }
            }
        }
    }

    fn members(
        &mut self,
        pointer: &str,
        depth: usize,
        members: &Map<String, Value>,
    ) -> Result<(), FlattenError> {
        if members.keys().next().is_some_and(|key| is_index(key)) {
            let message = "its first key counts items, so it would come back as a list";
            return Err(refuse(pointer, message));
        }
        for (key, member) in members {
            let pointer = format!("{pointer}/{}", escape(key));
            check_key(key, &pointer)?;
            self.add(&pointer, depth + 1, member)?;
        }
        Ok(())
    }
}

pub(crate) fn refuse(pointer: &str, message: impl Into<String>) -> FlattenError {
    FlattenError {
        pointer: pointer.to_owned(),
        message: message.into(),
    }
}

pub(crate) fn check_key(key: &str, pointer: &str) -> Result<(), FlattenError> {
    match unusable_key(key) {
        Some(reason) => Err(refuse(pointer, format!("a key {reason}"))),
        None => Ok(()),
    }
}
