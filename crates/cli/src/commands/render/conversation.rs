//! A conversation as `OpenAI` writes it.

use serde_json::{Map, Value};

use crate::commands::render::json_member;
use crate::text::json_place::no_json;

/// A message.
pub(super) struct Message {
    pub(super) role: String,
    /// The calls that it makes.
    pub(super) calls: Vec<PastCall>,
    /// The id of the call whose result it is.
    pub(super) result_of: Option<String>,
    /// All of it but the calls and that id, in the order in which it stands there.
    pub(super) members: Map<String, Value>,
}

/// A call that a message makes.
pub(super) struct PastCall {
    /// Empty if it has none.
    pub(super) id: String,
    pub(super) name: String,
    /// As they stand there: a text, which may be no JSON, or the object itself. Null if there are none.
    pub(super) arguments: Value,
}

impl Message {
    /// A message of the user.
    pub(super) fn of_user(text: String) -> Self {
        let mut message = Self {
            role: "user".to_owned(),
            calls: Vec::new(),
            result_of: None,
            members: Map::new(),
        };
        let role = Value::String(message.role.clone());
        message.members.insert("role".to_owned(), role);
        message.set_text(text);
        message
    }

    /// The text of its content; of one in parts, that of its parts; without content, the words of a refusal.
    pub(super) fn text(&self) -> String {
        match self.members.get("content") {
            None | Some(Value::Null) => match self.members.get("refusal") {
                Some(Value::String(text)) => text.clone(),
                _ => String::new(),
            },
            Some(Value::String(text)) => text.clone(),
            Some(Value::Array(parts)) => {
                let text = |part: &Value| match part.get("text").and_then(Value::as_str) {
                    Some(text) => text.to_owned(),
                    None => part.to_string(),
                };
                let texts: Vec<String> = parts.iter().map(text).collect();
                texts.join("\n")
            }
            Some(other) => other.to_string(),
        }
    }

    pub(super) fn set_text(&mut self, text: String) {
        self.members
            .insert("content".to_owned(), Value::String(text));
    }

    /// The texts of its content, each in its place: its text, or those of its parts; without content, the words of a
    /// refusal.
    pub(super) fn texts(&mut self) -> impl Iterator<Item = &mut String> {
        fn of_part(part: &mut Value) -> Option<&mut String> {
            match part.get_mut("text") {
                Some(Value::String(text)) => Some(text),
                _ => None,
            }
        }
        let key = match self.members.get("content") {
            None | Some(Value::Null) => "refusal",
            Some(_) => "content",
        };
        let (whole, parts) = match self.members.get_mut(key) {
            Some(Value::String(text)) => (Some(text), None),
            Some(Value::Array(parts)) => (None, Some(parts)),
            _ => (None, None),
        };
        let parts = parts.into_iter().flatten().filter_map(of_part);
        whole.into_iter().chain(parts)
    }

    fn read(value: Value) -> Result<Self, String> {
        let mut members = json_member::object(value)?;
        let role = match members.get("role") {
            Some(Value::String(role)) => role.clone(),
            Some(_) => return Err("its `role` is no string".to_owned()),
            None => return Err("it has no `role`".to_owned()),
        };
        if members
            .get("function_call")
            .is_some_and(|call| !call.is_null())
        {
            return Err("its `function_call` is the older form of a call: write it as one of `tool_calls`, and its result as a message with the role `tool`".to_owned());
        }
        let calls = json_member::list(&mut members, "tool_calls")?
            .into_iter()
            .enumerate()
            .map(|(index, call)| {
                PastCall::read(call)
                    .map_err(|reason| format!("call {} of its `tool_calls`: {reason}", index + 1))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self {
            role,
            calls,
            result_of: json_member::text(&mut members, "tool_call_id")?,
            members,
        })
    }
}

impl PastCall {
    fn read(value: Value) -> Result<Self, String> {
        let mut call = json_member::object(value)?;
        let Some(Value::Object(mut function)) = call.remove("function") else {
            return Err("it has no object `function`".to_owned());
        };
        let Some(name) = json_member::text(&mut function, "name")? else {
            return Err("its `function` has no `name`".to_owned());
        };
        Ok(Self {
            id: json_member::text(&mut call, "id")?.unwrap_or_default(),
            name,
            arguments: function.remove("arguments").unwrap_or_default(),
        })
    }
}

/// The messages of a text: of a list, of a request that holds one, or one behind the other.
///
/// # Errors
/// Says in a phrase what is wrong, and with which message.
pub(super) fn read(bytes: &[u8]) -> Result<Vec<Message>, String> {
    const FORMS: &str = "what is read is a list of messages as OpenAI writes them, an object that holds it as `messages`, or messages one behind the other";
    let mut messages = Vec::new();
    let mut is_empty = true;
    for value in serde_json::Deserializer::from_slice(bytes).into_iter::<Value>() {
        is_empty = false;
        match value.map_err(|error| format!("not JSON: {}", no_json(&error)))? {
            Value::Array(list) => messages.extend(list),
            Value::Object(mut object) => match object.remove("messages") {
                Some(Value::Array(list)) => messages.extend(list),
                None if object.contains_key("role") => messages.push(Value::Object(object)),
                _ => return Err(format!("there are no messages in it: {FORMS}")),
            },
            _ => return Err(format!("there are no messages in it: {FORMS}")),
        }
    }
    if is_empty {
        return Err(format!("it is empty: {FORMS}"));
    }
    let read = |(index, message)| {
        Message::read(message).map_err(|reason| format!("message {}: {reason}", index + 1))
    };
    messages.into_iter().enumerate().map(read).collect()
}
