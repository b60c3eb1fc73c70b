//! `render --as messages`: a conversation with its calls and results as text.

use std::path::Path;
use std::slice;

use plaincall_prompt::history::{
    PastCall, ResultMessage, TurnPart, history, in_call_order, results,
};
use plaincall_reply::{PromptTextBuilder, Untrusted};
use plaincall_syntax::Dialect;
use plaincall_tool::ToolSet;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::commands::render::calls::Function;
use crate::output::Output;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::{read_input, without_bom};
use crate::text::json_error::describe;

/// An OpenAI message. Its calls and the id of a result are written as text instead.
#[derive(Deserialize, Serialize)]
struct Message {
    role: String,
    #[serde(default, skip_serializing)]
    tool_calls: Option<Vec<ToolCall>>,
    #[serde(default, skip_serializing)]
    tool_call_id: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
struct ToolCall {
    #[serde(default)]
    id: Option<String>,
    function: Function,
}

impl Message {
    /// Returns the key of its text: `content`, or `refusal` without content.
    fn text_key(&self) -> &'static str {
        match self.rest.get("content") {
            None | Some(Value::Null) => "refusal",
            Some(_) => "content",
        }
    }

    /// Returns the text of its content. Text parts are joined.
    fn text(&self) -> String {
        match self.rest.get(self.text_key()) {
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

    fn set_text(&mut self, text: String) {
        self.rest.insert("content".to_owned(), text.into());
    }
}

/// Writes conversations.
pub(super) struct MessageWriter {
    dialect: Dialect,
    tools: ToolSet,
}

/// The last message's calls whose results are not written yet.
#[derive(Default)]
struct PendingResults {
    /// Name and id of each call.
    calls: Vec<(String, String)>,
    results: Vec<ResultMessage<'static>>,
}

impl MessageWriter {
    pub(super) fn new(dialect: Dialect, tools: Option<ToolSet>) -> Self {
        let tools = tools.unwrap_or_default();
        Self { dialect, tools }
    }

    pub(super) fn file(&self, file: &Path, output: &mut Output) -> Outcome {
        let (name, bytes) = read_input(file)?;
        let messages = read(without_bom(&bytes))
            .map_err(|reason| Failure::Runtime(format!("{name}: {reason}")))?;
        let mut pending = PendingResults::default();
        for mut message in messages {
            if message.role == "tool" {
                let id = message.tool_call_id.take().unwrap_or_default();
                let result = ResultMessage::new(Untrusted::new(""), Untrusted::new(id));
                let output = Untrusted::new(message.text());
                pending.results.push(result.output(output));
                continue;
            }
            self.results(std::mem::take(&mut pending), output)?;
            let calls = message.tool_calls.take().unwrap_or_default();
            if !calls.is_empty() {
                let text = self.turn(&message.text(), &calls)?;
                message.set_text(text);
                let named = calls.into_iter();
                let named = named.map(|call| (call.function.name, call.id.unwrap_or_default()));
                pending.calls = named.collect();
            } else if !matches!(message.role.as_str(), "system" | "developer") {
                self.escape(&mut message)?;
            }
            output.json_line(&message)?;
        }
        self.results(pending, output)?;
        Ok(Status::Success)
    }

    /// Renders a message with calls.
    fn turn(&self, text: &str, calls: &[ToolCall]) -> Result<String, Failure> {
        let mut parts = Vec::new();
        if !text.is_empty() {
            parts.push(TurnPart::Claimed(Untrusted::new(text)));
        }
        for ToolCall { id, function } in calls {
            let name = Untrusted::new(&function.name);
            let past_call = match &function.arguments {
                Value::Null => PastCall::from_text(name, Untrusted::new("")),
                Value::String(text) => PastCall::from_text(name, Untrusted::new(text)),
                Value::Object(object) => PastCall::new(name, object),
                other => PastCall::from_text(name, Untrusted::new(other.to_string())),
            };
            let id = id.as_ref().filter(|id| !id.is_empty());
            parts.push(TurnPart::Called(match id {
                Some(id) => past_call.id(Untrusted::new(id)),
                None => past_call,
            }));
        }
        let prompt_text = history(&parts, &self.dialect, |name| self.tools.get(name));
        Ok(prompt_text?.into_text())
    }

    /// Escapes the text of a message, so that untrusted text contains no markers.
    fn escape(&self, message: &mut Message) -> Result<(), Failure> {
        let key = message.text_key();
        match message.rest.get_mut(key) {
            Some(Value::String(text)) => *text = self.escaped(std::mem::take(text))?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    if let Some(Value::String(text)) = part.get_mut("text") {
                        *text = self.escaped(std::mem::take(text))?;
                    }
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn escaped(&self, text: String) -> Result<String, Failure> {
        let mut prompt_text = PromptTextBuilder::new(slice::from_ref(&self.dialect))?;
        prompt_text.untrusted(&Untrusted::new(text));
        Ok(prompt_text.finish().into_text())
    }

    /// Writes the results of the last calls, if there are any.
    fn results(&self, pending: PendingResults, output: &mut Output) -> Result<(), Failure> {
        if pending.calls.is_empty() && pending.results.is_empty() {
            return Ok(());
        }
        let named = pending.calls.into_iter();
        let named = named.map(|(name, id)| (Untrusted::new(name), Untrusted::new(id)));
        let ordered = in_call_order(named, pending.results);
        let prompt_text = results(&ordered, &self.dialect)?;
        let mut message = Message {
            role: "user".to_owned(),
            tool_calls: None,
            tool_call_id: None,
            rest: Map::new(),
        };
        message.set_text(prompt_text.into_text());
        output.json_line(&message)
    }
}

/// Parses the messages: an array, or a request with `messages`.
fn read(bytes: &[u8]) -> Result<Vec<Message>, String> {
    let value =
        serde_json::from_slice(bytes).map_err(|error| format!("not JSON: {}", describe(&error)))?;
    let messages = match value {
        Value::Array(list) => Some(Value::Array(list)),
        Value::Object(mut object) => object.remove("messages"),
        _ => None,
    };
    let Some(Value::Array(messages)) = messages else {
        return Err("no messages found: expected an array of OpenAI messages, or an object with such an array as `messages`".to_owned());
    };
    let read = |(index, value)| {
        let message: Message = serde_json::from_value(value)
            .map_err(|error| format!("message {}: {error}", index + 1))?;
        match message.rest.get("function_call") {
            None | Some(Value::Null) => Ok(message),
            Some(_) => Err(format!(
                "message {}: `function_call` is deprecated; use `tool_calls`, and the role `tool` for the result",
                index + 1
            )),
        }
    };
    messages.into_iter().enumerate().map(read).collect()
}
