//! The input of a request as the messages of a conversation.

use std::borrow::Cow;

use plaincall_wire::Json;
use plaincall_wire::openai::{self, CallArguments, ContentPart, Message, ToolCall};
use plaincall_wire::openai_responses::{Content, Input, Item, Part};
use serde_json::json;

use crate::api::responses::tools::{INPUT, ToolNames, ToolPlace};
use crate::error::GatewayError;

/// Returns the tools in an input, each with its place.
pub(super) fn additional_tools(
    input: &Input<'_>,
) -> Result<Vec<(ToolPlace, Json<'static>)>, GatewayError> {
    let Input::Items(items) = input else {
        return Ok(Vec::new());
    };
    let mut all = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let tools = item.tools.as_ref();
        let Some(tools) = tools.filter(|_| item.kind() == "additional_tools") else {
            continue;
        };
        let tools: Vec<Json<'_>> = tools.read().map_err(|error| {
            let at = format!("input[{index}].tools");
            GatewayError::invalid_request(format!("{at}: {error}"), Some(&at))
        })?;
        let tools = tools.into_iter().enumerate();
        all.extend(tools.map(|(number, tool)| {
            let place = ToolPlace::new(Some(index), number);
            (place, tool.into_owned())
        }));
    }
    Ok(all)
}

/// The messages of a conversation.
pub(super) struct Conversation<'n, 'r> {
    names: &'n ToolNames,
    messages: Vec<Message<'r>>,
    /// The reasoning that precedes the model's next item.
    reasoning: String,
}

impl<'n, 'r> Conversation<'n, 'r> {
    /// Returns the messages of a request with these tools.
    pub(super) fn read(
        instructions: Option<Cow<'r, str>>,
        input: Input<'r>,
        names: &'n ToolNames,
    ) -> Result<Vec<Message<'r>>, GatewayError> {
        let mut conversation = Self {
            names,
            messages: Vec::new(),
            reasoning: String::new(),
        };
        let instructions = instructions.filter(|text| !text.is_empty());
        let instructions = instructions.map(|text| Message::new("system", text.into_owned()));
        conversation.messages.extend(instructions);
        match input {
            Input::Text(text) => {
                let mut message = Message::new("user", "");
                message.content = Some(openai::Content::Text(text));
                conversation.messages.push(message);
            }
            Input::Items(items) => {
                for (index, item) in items.into_iter().enumerate() {
                    conversation.add(item, index)?;
                }
            }
        }
        Ok(conversation.messages)
    }

    fn add(&mut self, mut item: Item<'r>, index: usize) -> Result<(), GatewayError> {
        match item.kind() {
            "message" => return self.message(item, index),
            "function_call" => {
                let name = self.name(&item);
                let mut call = ToolCall::new(item.call_id.unwrap_or_default(), name, "");
                if let Some(function) = &mut call.function {
                    let empty = || CallArguments::Text(Cow::Borrowed(""));
                    function.arguments = Some(item.arguments.unwrap_or_else(empty));
                }
                self.call(call);
            }
            "custom_tool_call" => {
                let name = self.name(&item);
                let arguments = json!({INPUT: item.input.unwrap_or_default()}).to_string();
                let call = ToolCall::new(item.call_id.unwrap_or_default(), name, arguments);
                self.call(call);
            }
            "function_call_output" | "custom_tool_call_output" => {
                self.reasoning.clear();
                let output = item.output.take().unwrap_or_else(|| "".into());
                let mut message = Message::new("tool", "");
                message.content = Some(content(output, index, "output")?);
                message.tool_call_id = item.call_id;
                self.messages.push(message);
            }
            "reasoning" => self.reasoning.push_str(&reasoning(&item)),
            "item_reference" => {
                let message = "items are not stored, so `item_reference` is not supported: send the item itself, as clients do with `store: false`";
                return Err(invalid(message, index, "type"));
            }
            // Tools, and calls of hosted tools and their results, which no tool of this request can continue.
            _ => {}
        }
        Ok(())
    }

    /// Returns the model's name of the tool that an item names.
    fn name(&self, item: &Item<'_>) -> String {
        let name = item.name.as_deref().unwrap_or_default();
        self.names.full(item.namespace.as_deref(), name)
    }

    fn message(&mut self, mut item: Item<'r>, index: usize) -> Result<(), GatewayError> {
        let role = item.role.take().unwrap_or_default();
        let given = item.content.take().unwrap_or_else(|| "".into());
        match &*role {
            "assistant" => {
                self.model_text(given);
                return Ok(());
            }
            "user" | "system" | "developer" => {}
            _ => {
                let message = "`role` must be `user`, `assistant`, `system` or `developer`";
                return Err(invalid(message, index, "role"));
            }
        }
        self.reasoning.clear();
        let content = content(given, index, "content")?;
        let mut message = Message::new(role, "");
        message.content = Some(content);
        self.messages.push(message);
        Ok(())
    }

    /// Adds a text of the model to its turn.
    fn model_text(&mut self, given: Content<'r>) {
        let refusal = match &given {
            Content::Text(_) => String::new(),
            Content::Parts(parts) => {
                let refusals = parts.iter().filter_map(|part| part.refusal.as_deref());
                refusals.collect()
            }
        };
        let text = match given {
            Content::Text(text) => text,
            parts @ Content::Parts(_) => Cow::Owned(parts.text().into_owned()),
        };
        let turn = self.turn();
        match &mut turn.content {
            Some(openai::Content::Text(before)) => before.to_mut().push_str(&text),
            content => *content = Some(openai::Content::Text(text)),
        }
        if !refusal.is_empty() {
            turn.refusal = Some(refusal.into());
        }
    }

    /// Adds a call of the model to its turn.
    fn call(&mut self, call: ToolCall<'r>) {
        self.turn().tool_calls.get_or_insert_default().push(call);
    }

    /// Returns the model's turn: the last message if it is the model's, otherwise a new one.
    fn turn(&mut self) -> &mut Message<'r> {
        let reasoning = std::mem::take(&mut self.reasoning);
        let is_open = |message: &Message<'_>| message.role() == "assistant";
        if !self.messages.last().is_some_and(is_open) {
            self.messages.push(Message {
                role: Some("assistant".into()),
                ..Message::default()
            });
        }
        let last = self.messages.len() - 1;
        let turn = &mut self.messages[last];
        if !reasoning.is_empty() {
            let before = turn.reasoning_content.get_or_insert_default();
            before.to_mut().push_str(&reasoning);
        }
        turn
    }
}

fn invalid(message: &str, index: usize, field: &str) -> GatewayError {
    let at = format!("input[{index}].{field}");
    GatewayError::invalid_request(format!("{at}: {message}"), Some(&at))
}

/// Returns the text of a reasoning, or its summary.
fn reasoning(item: &Item<'_>) -> String {
    let content = item.content.as_ref().map(Content::text);
    if let Some(content) = content.filter(|text| !text.is_empty()) {
        return content.into_owned();
    }
    let summary = item.summary.iter().flatten();
    let texts: Vec<&str> = summary.filter_map(|part| part.text.as_deref()).collect();
    texts.join("\n\n")
}

/// Converts a content. A single text stays a text.
fn content<'r>(
    content: Content<'r>,
    index: usize,
    field: &str,
) -> Result<openai::Content<'r>, GatewayError> {
    let parts = match content {
        Content::Text(text) => return Ok(openai::Content::Text(text)),
        Content::Parts(parts) => parts,
    };
    let parts: Result<Vec<_>, _> = parts
        .into_iter()
        .enumerate()
        .map(|(number, one)| {
            part(one).map_err(|message| invalid(message, index, &format!("{field}[{number}]")))
        })
        .collect();
    let mut parts = parts?;
    let is_text = |part: &ContentPart<'_>| part.text.is_some();
    if parts.len() == 1 && parts.iter().all(is_text) {
        let text = parts.pop().and_then(|part| part.text);
        return Ok(openai::Content::Text(text.unwrap_or_default()));
    }
    Ok(openai::Content::Parts(parts))
}

/// Converts a part of a content.
fn part(mut part: Part<'_>) -> Result<ContentPart<'_>, &'static str> {
    let mut unknown = std::mem::take(&mut part.unknown);
    let mut chat = ContentPart::default();
    let kind = match part.kind.as_deref().unwrap_or_default() {
        "input_image" => {
            let url = unknown.get("image_url").filter(|url| !url.is_null());
            let url = url.ok_or("files are not stored: send the image itself as `image_url`")?;
            let detail = unknown.get("detail").filter(|detail| !detail.is_null());
            let detail = detail.map(|detail| format!(",\"detail\":{}", detail.text()));
            let image = format!("{{\"url\":{}{}}}", url.text(), detail.unwrap_or_default());
            set(&mut chat, "image_url", &image);
            "image_url"
        }
        "input_file" => {
            let data = unknown.get("file_data").filter(|data| !data.is_null());
            let data = data.ok_or("files are not stored: send the file itself as `file_data`")?;
            let name = unknown.get("filename").filter(|name| !name.is_null());
            let name = name.map(|name| format!(",\"filename\":{}", name.text()));
            let file = format!(
                "{{\"file_data\":{}{}}}",
                data.text(),
                name.unwrap_or_default()
            );
            set(&mut chat, "file", &file);
            "file"
        }
        "refusal" => {
            chat.text = part.refusal;
            "text"
        }
        _ if part.text.is_some() => {
            chat.text = part.text;
            "text"
        }
        other => {
            chat.kind = Some(other.to_owned().into());
            std::mem::swap(&mut chat.unknown, &mut unknown);
            return Ok(chat);
        }
    };
    chat.kind = Some(kind.into());
    Ok(chat)
}

fn set(part: &mut ContentPart<'_>, field: &'static str, json: &str) {
    // It consists of JSON values.
    let json = Json::parse(json).map(Json::into_owned);
    part.unknown.set(field, json.unwrap_or_default());
}
