//! The arguments of a call in events, and the arguments of a submitted call.

use plaincall_names::pointers::escape;
use plaincall_reply::CallError;
use plaincall_tool::{Arguments, Limits, ToolSpec, bind_arguments, bind_object, flatten_call};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// Arguments as texts: pairs of JSON Pointer and value, in the order in which they were written. Serialized as an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentTexts(pub Vec<(String, String)>);

/// The maximum nesting of JSON in a log. `serde_json` cannot read JSON that is nested much deeper.
pub(crate) const DEEPEST: usize = 64;

/// The arguments of a submitted call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum SubmittedArguments {
    /// A JSON object, nested at most 64 levels deep.
    Json(Value),
    /// Texts by JSON Pointer, as a model writes them.
    Texts(ArgumentTexts),
}

impl From<Value> for SubmittedArguments {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<Map<String, Value>> for SubmittedArguments {
    fn from(object: Map<String, Value>) -> Self {
        Self::Json(Value::Object(object))
    }
}

impl From<Vec<(String, String)>> for SubmittedArguments {
    fn from(texts: Vec<(String, String)>) -> Self {
        Self::Texts(ArgumentTexts(texts))
    }
}

impl SubmittedArguments {
    /// Replaces JSON that is nested too deeply for a log by `null`, so that the call is rejected.
    pub(crate) fn not_too_deep(self) -> Self {
        match self {
            Self::Json(value) if nesting(&value) > DEEPEST => Self::Json(Value::Null),
            other => other,
        }
    }

    /// Returns the arguments for the tool.
    ///
    /// # Errors
    /// Returns a message for the model.
    pub(crate) fn bind(&self, tool: &ToolSpec, limits: &Limits) -> Result<Arguments, String> {
        match self {
            Self::Json(Value::Object(object)) => {
                let mut count = 0;
                for (key, value) in object {
                    check_limits(&escape(key), value, limits, &mut count)?;
                }
                let bound = bind_object(tool, object);
                bound.map_err(|problems| CallError::Arguments(problems).to_string())
            }
            Self::Json(_) => Err(wrong(&format!(
                "expected a JSON object, nested at most {DEEPEST} deep"
            ))),
            Self::Texts(texts) => {
                let mut count = 0;
                for (pointer, text) in &texts.0 {
                    check_length(pointer, text.len(), limits, &mut count)?;
                }
                bind_pairs(tool, &texts.0, limits)
            }
        }
    }

    /// Returns the arguments of an edit by a person. A log has their texts, so the texts must mean the same values.
    ///
    /// # Errors
    /// Returns a message for the model.
    pub(crate) fn bind_edit(arguments: &Value, tool: &ToolSpec) -> Result<Arguments, String> {
        let object = arguments.as_object();
        let object = object.ok_or_else(|| wrong("expected a JSON object"))?;
        let pairs = flatten_call(object, tool).map_err(|problem| wrong(&problem))?;
        // The limits of calls do not apply to a person.
        bind_pairs(tool, &pairs, &Limits::default())
    }
}

/// Counts the scalars of a value and checks their lengths. Recurses as deep as the value.
fn check_limits(
    pointer: &str,
    value: &Value,
    limits: &Limits,
    count: &mut usize,
) -> Result<(), String> {
    match value {
        Value::Array(items) if !items.is_empty() => {
            (0..).zip(items).try_for_each(|(index, item): (usize, _)| {
                check_limits(&format!("{pointer}/{index}"), item, limits, count)
            })
        }
        Value::Object(members) if !members.is_empty() => {
            members.iter().try_for_each(|(key, member)| {
                check_limits(&format!("{pointer}/{}", escape(key)), member, limits, count)
            })
        }
        Value::String(text) => check_length(pointer, text.len(), limits, count),
        _ => check_length(pointer, 0, limits, count),
    }
}

fn check_length(
    pointer: &str,
    length: usize,
    limits: &Limits,
    count: &mut usize,
) -> Result<(), String> {
    *count += 1;
    if *count > limits.arguments {
        let most = limits.arguments;
        return Err(wrong(&format!("a call has at most {most} arguments")));
    }
    match limits.value_bytes.filter(|most| length > *most) {
        Some(most) => Err(wrong(&format!("`{pointer}` has more than {most} bytes"))),
        None => Ok(()),
    }
}

/// Converts texts by JSON Pointer to the arguments of a tool.
///
/// # Errors
/// Returns a message for the model.
pub(crate) fn bind_pairs(
    tool: &ToolSpec,
    pairs: &[(String, String)],
    limits: &Limits,
) -> Result<Arguments, String> {
    let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
    let arguments = Arguments::from_pairs_within(limits, tool, pairs)
        .map_err(|error| wrong(&error.to_string()))?;
    bind_arguments(tool, &arguments).map_err(|problems| CallError::Arguments(problems).to_string())
}

fn wrong(problem: &str) -> String {
    format!("invalid arguments: {problem}")
}

/// Returns the nesting of lists and objects in a value, at most one more than is allowed.
pub(crate) fn nesting(value: &Value) -> usize {
    let mut level: Vec<&Value> = vec![value];
    let mut depth = 0;
    while depth <= DEEPEST && !level.is_empty() {
        let inner = level.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        });
        level = inner.collect();
        depth += 1;
    }
    depth
}

impl Serialize for ArgumentTexts {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(pointer, text)| (pointer, text)))
    }
}

impl<'d> Deserialize<'d> for ArgumentTexts {
    fn deserialize<D: serde::Deserializer<'d>>(deserializer: D) -> Result<Self, D::Error> {
        struct Pairs;

        impl<'d> serde::de::Visitor<'d> for Pairs {
            type Value = ArgumentTexts;

            fn expecting(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                formatter.write_str("an object of texts")
            }

            fn visit_map<M: serde::de::MapAccess<'d>>(
                self,
                mut map: M,
            ) -> Result<Self::Value, M::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(ArgumentTexts(pairs))
            }
        }

        deserializer.deserialize_map(Pairs)
    }
}

/// Returns texts as arguments, without the definition of a tool.
pub(crate) fn unbound(pairs: &[(String, String)]) -> Arguments {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(pointer, text)| (&**pointer, &**text));
    Arguments::from_pairs(pairs).unwrap_or_default()
}

impl From<&Arguments> for ArgumentTexts {
    fn from(arguments: &Arguments) -> Self {
        let pairs = arguments.iter();
        let pairs = pairs.map(|one| (one.pointer.to_owned(), one.text.to_owned()));
        Self(pairs.collect())
    }
}
