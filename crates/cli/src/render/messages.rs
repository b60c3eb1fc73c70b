//! The messages of a conversation, with calls and results as text.

use std::path::Path;

use plaincall_call::{
    Foreign, PastCall, ToldResult, ToolSet, TurnPart, history, in_call_order, results,
};
use plaincall_syntax::Dialect;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::arguments::RenderOptions;
use crate::input::Input;
use crate::reading::refused;
use crate::render::sink::Sink;
use crate::render::written_dialect;
use crate::status::{Failure, Outcome, Status};

/// Tells conversations again.
pub(super) struct Teller {
    dialect: Dialect,
    tools: ToolSet,
    is_json: bool,
}

/// A message as `OpenAI` writes it. What is not named here stays as it is.
#[derive(Deserialize, Serialize)]
struct Message {
    role: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    content: Option<Value>,
    #[serde(default, skip_serializing)]
    tool_calls: Vec<Call>,
    #[serde(default, skip_serializing)]
    tool_call_id: Option<String>,
    #[serde(flatten)]
    others: serde_json::Map<String, Value>,
}

#[derive(Deserialize)]
struct Call {
    #[serde(default)]
    id: String,
    function: Function,
}

#[derive(Deserialize)]
struct Function {
    name: String,
    #[serde(default)]
    arguments: Arguments,
}

/// Text, or the object itself where somebody has written it so.
#[derive(Deserialize)]
#[serde(untagged)]
enum Arguments {
    Text(String),
    Value(Value),
}

impl Default for Arguments {
    fn default() -> Self {
        Self::Text(String::new())
    }
}

impl Teller {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        Ok(Self {
            dialect: written_dialect(options)?,
            tools: options.schema.load(&options.files)?.unwrap_or_default(),
            is_json: options.json,
        })
    }

    pub(super) fn file(&self, file: &Path, sink: &mut Sink<'_>) -> Outcome {
        let input = Input::open(file)?;
        let name = input.name.clone();
        let bytes = input.into_bytes()?;
        let messages =
            messages(&bytes).map_err(|reason| Failure::Broken(format!("{name}: {reason}")))?;
        // The calls whose results have not been told yet, by name and id.
        let mut calls: Vec<(String, String)> = Vec::new();
        let mut told: Vec<ToldResult<'static>> = Vec::new();
        for message in messages {
            if message.role == "tool" {
                let id = message.tool_call_id.as_deref().unwrap_or_default();
                let result = ToldResult::new(Foreign::new(""), Foreign::new(id.to_owned()));
                told.push(result.output(Foreign::new(text_of(message.content.as_ref()))));
                continue;
            }
            self.results(&mut calls, &mut told, sink)?;
            if message.role == "assistant" && !message.tool_calls.is_empty() {
                let text = self.turn(&message)?;
                let named = |call: &Call| (call.function.name.clone(), call.id.clone());
                calls = message.tool_calls.iter().map(named).collect();
                let message = Message {
                    content: Some(Value::String(text)),
                    ..message
                };
                self.message(&message, sink)?;
            } else {
                self.message(&message, sink)?;
            }
        }
        self.results(&mut calls, &mut told, sink)?;
        Ok(Status::Good)
    }

    /// The text of a message with calls.
    fn turn(&self, message: &Message) -> Result<String, Failure> {
        let said = text_of(message.content.as_ref());
        let mut parts = Vec::new();
        if !said.is_empty() {
            parts.push(TurnPart::Said(Foreign::new(said)));
        }
        for Call { id, function } in &message.tool_calls {
            let name = Foreign::new(&function.name);
            let call = match &function.arguments {
                Arguments::Text(text) => PastCall::from_text(name, Foreign::new(text)),
                Arguments::Value(Value::Object(object)) => PastCall::new(name, object),
                Arguments::Value(other) => {
                    PastCall::from_text(name, Foreign::new(other.to_string()))
                }
            };
            parts.push(TurnPart::Called(if id.is_empty() {
                call
            } else {
                call.id(Foreign::new(id))
            }));
        }
        let passage = history(&parts, &self.dialect, |name| self.tools.get(name));
        Ok(passage.map_err(|error| refused(&error))?.into_text())
    }

    /// Tells the results of the last calls, if there are any.
    fn results(
        &self,
        calls: &mut Vec<(String, String)>,
        told: &mut Vec<ToldResult<'static>>,
        sink: &mut Sink<'_>,
    ) -> Result<(), Failure> {
        let calls = std::mem::take(calls);
        let told = std::mem::take(told);
        if calls.is_empty() && told.is_empty() {
            return Ok(());
        }
        let named = calls
            .into_iter()
            .map(|(name, id)| (Foreign::new(name), Foreign::new(id)));
        let ordered = in_call_order(named, told);
        let passage = results(&ordered, &self.dialect).map_err(|error| refused(&error))?;
        let message = Message {
            role: "user".to_owned(),
            content: Some(Value::String(passage.into_text())),
            tool_calls: Vec::new(),
            tool_call_id: None,
            others: serde_json::Map::new(),
        };
        self.message(&message, sink)
    }

    fn message(&self, message: &Message, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let text = text_of(message.content.as_ref());
        if self.is_json {
            return sink.json_line(&message.role, message, &text);
        }
        sink.heading(&message.role)?;
        let line_end = if text.ends_with('\n') { "" } else { "\n" };
        sink.piece(&message.role, [&text, line_end].concat().as_bytes())
    }
}

/// The messages of a list, or of a request that holds one.
///
/// # Errors
/// Says in a phrase what is wrong, and with which message.
fn messages(bytes: &[u8]) -> Result<Vec<Message>, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|error| format!("no JSON: {error}"))?;
    let list = match value {
        Value::Array(list) => Some(list),
        Value::Object(mut request) => match request.remove("messages") {
            Some(Value::Array(list)) => Some(list),
            _ => None,
        },
        _ => None,
    };
    let list = list.ok_or(
        "there are no messages in it: what is read is a list of messages as OpenAI writes them, or an object that holds it as `messages`",
    )?;
    let read = |(index, message)| {
        let wrong = |error| format!("message {} is none as OpenAI writes it: {error}", index + 1);
        serde_json::from_value(message).map_err(wrong)
    };
    list.into_iter().enumerate().map(read).collect()
}

/// The text of a message; of one in parts, that of its parts.
fn text_of(content: Option<&Value>) -> String {
    match content {
        None | Some(Value::Null) => String::new(),
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
