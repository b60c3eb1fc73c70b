//! Calls as JSON, in every form that `render` reads.

use plaincall_call::{Termination, parse_json};
use serde_json::{Map, Value};

use crate::commands::render::json_member;

/// A part of what is to be written.
#[derive(Debug)]
pub(crate) enum Item {
    /// Text outside calls.
    Text(String),
    /// Text between the reasoning markers.
    Reasoning(String),
    /// A call, or why what stands there is none.
    Call {
        call: Result<Form, NoCall>,
        /// Whether a document says that the end of its text ended the call.
        is_unclosed: bool,
    },
}

/// A call, in the form in which it came.
#[derive(Debug)]
pub(crate) enum Form {
    /// A block call as `parse` prints it.
    Block {
        name: String,
        id: Option<String>,
        dependencies: Vec<String>,
        arguments: Map<String, Value>,
    },
    /// An emoji call as `parse` prints it.
    Emoji {
        name: String,
        raw_args: String,
        body: String,
    },
    /// An `OpenAI` tool call.
    OpenAi {
        id: Option<String>,
        name: String,
        arguments: Map<String, Value>,
    },
}

/// What keeps a JSON value from being a call.
#[derive(Debug)]
pub(crate) struct NoCall {
    /// The name of the tool, if there is one.
    pub(crate) name: Option<String>,
    pub(crate) reason: String,
}

impl Form {
    pub(crate) fn name(&self) -> &str {
        match self {
            Self::Block { name, .. } | Self::Emoji { name, .. } | Self::OpenAi { name, .. } => name,
        }
    }
}

/// The items of one JSON value, and whether it is a whole document.
pub(crate) fn items(value: Value) -> (Vec<Item>, bool) {
    let mut items = Vec::new();
    let mut is_document = false;
    match value {
        Value::Array(values) => items.extend(values.into_iter().map(element)),
        Value::Object(mut object) => match object.remove("segments") {
            Some(Value::Array(segments)) => {
                is_document = true;
                items.extend(segments.into_iter().map(segment));
            }
            Some(_) => items.push(no_call(None, "its `segments` are no array")),
            None => match tool_calls(&mut object) {
                Some(Value::Array(calls)) => items.extend(calls.into_iter().map(element)),
                Some(_) => items.push(no_call(None, "its `tool_calls` are no array")),
                None => items.push(element(Value::Object(object))),
            },
        },
        other => items.push(element(other)),
    }
    (items, is_document)
}

/// The `tool_calls` of a message, or of an answer that holds one.
fn tool_calls(object: &mut Map<String, Value>) -> Option<Value> {
    if let Some(calls) = object.remove("tool_calls") {
        return Some(calls);
    }
    object
        .get_mut("message")?
        .as_object_mut()?
        .remove("tool_calls")
}

fn segment(value: Value) -> Item {
    let Value::Object(mut object) = value else {
        return no_call(None, "a segment is no object");
    };
    let kind = object
        .get("type")
        .and_then(Value::as_str)
        .unwrap_or_default()
        .to_owned();
    match (kind.as_str(), object.remove("text")) {
        ("text", Some(Value::String(text))) => Item::Text(text),
        ("reasoning", Some(Value::String(text))) => Item::Reasoning(text),
        ("call", _) if object.contains_key("call") => element(Value::Object(object)),
        _ => no_call(
            None,
            "a segment is neither `text` nor `reasoning` with a text, nor `call` with a call",
        ),
    }
}

fn element(value: Value) -> Item {
    let Value::Object(mut object) = value else {
        return no_call(None, "it is no object");
    };
    if object.get("type").is_some_and(|kind| kind == "call")
        && let Some(call) = object.remove("call")
    {
        let end = Termination::EndOfStream.name();
        let is_unclosed = object
            .get("termination")
            .is_some_and(|termination| termination == end);
        return match element(call) {
            Item::Call { call, .. } => Item::Call { call, is_unclosed },
            other => other,
        };
    }
    Item::Call {
        call: form(object),
        is_unclosed: false,
    }
}

fn no_call(name: Option<&str>, reason: &str) -> Item {
    Item::Call {
        call: Err(NoCall {
            name: name.map(str::to_owned),
            reason: reason.to_owned(),
        }),
        is_unclosed: false,
    }
}

fn form(mut object: Map<String, Value>) -> Result<Form, NoCall> {
    if object.contains_key("gadgetName") {
        let name = string(&mut object, "gadgetName", None)?.unwrap_or_default();
        return block(name.clone(), object).map_err(|reason| NoCall {
            name: Some(name),
            reason,
        });
    }
    if object.contains_key("tool_name") {
        let name = string(&mut object, "tool_name", None)?.unwrap_or_default();
        return Ok(Form::Emoji {
            raw_args: string(&mut object, "raw_args", Some(&name))?.unwrap_or_default(),
            body: string(&mut object, "body", Some(&name))?.unwrap_or_default(),
            name,
        });
    }
    if let Some(Value::Object(function)) = object.remove("function") {
        return openai(object, function);
    }
    let reason = match object.get("error").and_then(Value::as_str) {
        Some(error) => format!("it was not read: {error}"),
        None if object.contains_key("messages") => {
            "it is a conversation: `--as history` writes it".to_owned()
        }
        None => "it has none of the keys `gadgetName`, `tool_name`, `function`, `tool_calls` and `segments`".to_owned(),
    };
    Err(NoCall { name: None, reason })
}

fn block(name: String, mut object: Map<String, Value>) -> Result<Form, String> {
    let id = json_member::text(&mut object, "invocationId")?;
    let dependencies = match object.remove("dependencies") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) => items
            .into_iter()
            .map(|item| match item {
                Value::String(item) => Ok(item),
                _ => Err("one of its `dependencies` is no string".to_owned()),
            })
            .collect::<Result<_, _>>()?,
        Some(_) => return Err("its `dependencies` are no array".to_owned()),
    };
    let arguments = match (object.remove("parameters"), object.remove("parseError")) {
        (Some(Value::Object(arguments)), _) => arguments,
        (Some(_), _) => return Err("its `parameters` are no object".to_owned()),
        (None, Some(Value::String(error))) => {
            return Err(format!(
                "it was read with an error and has no `parameters`: {error}"
            ));
        }
        (None, _) => return Err("it has no `parameters`".to_owned()),
    };
    Ok(Form::Block {
        name,
        id,
        dependencies,
        arguments,
    })
}

fn openai(
    mut object: Map<String, Value>,
    mut function: Map<String, Value>,
) -> Result<Form, NoCall> {
    let Some(name) = string(&mut function, "name", None)? else {
        return Err(NoCall {
            name: None,
            reason: "its function has no `name`".to_owned(),
        });
    };
    let wrong = |reason: String| NoCall {
        name: Some(name.clone()),
        reason,
    };
    let arguments = match function.remove("arguments") {
        // A function without parameters may come with an empty text.
        None | Some(Value::Null) => Map::new(),
        Some(Value::String(text)) if text.trim().is_empty() => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) => match parse_json(&text) {
            Ok(Value::Object(arguments)) => arguments,
            Ok(_) => return Err(wrong("its `arguments` are no JSON object".to_owned())),
            Err(reason) => {
                let reason = format!("its `arguments` cannot be read as JSON: {reason}");
                return Err(wrong(reason));
            }
        },
        Some(_) => {
            return Err(wrong(
                "its `arguments` are neither a text nor an object".to_owned(),
            ));
        }
    };
    let id = string(&mut object, "id", Some(&name))?;
    Ok(Form::OpenAi {
        id,
        name,
        arguments,
    })
}

fn string(
    object: &mut Map<String, Value>,
    key: &str,
    name: Option<&str>,
) -> Result<Option<String>, NoCall> {
    json_member::text(object, key).map_err(|reason| NoCall {
        name: name.map(str::to_owned),
        reason,
    })
}
