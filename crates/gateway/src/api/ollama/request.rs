//! Converts a request to a chat completions request.

use std::borrow::Cow;
use std::collections::{BTreeMap, VecDeque};

use plaincall_wire::Json;
use plaincall_wire::ollama::{ChatRequest, Message, Options};
use plaincall_wire::openai::{
    self, CallArguments, ChatCompletionRequest, Content, ContentPart, ResponseFormat, StreamOptions,
};
use serde_json::json;

use crate::error::GatewayError;
use crate::translate::text_part;

/// The options that model servers know by the same name.
const SAME: [&str; 8] = [
    "temperature",
    "top_p",
    "top_k",
    "min_p",
    "seed",
    "stop",
    "frequency_penalty",
    "presence_penalty",
];

/// The beginnings of images in Base64, and their types. Others are PNG.
const IMAGE_TYPES: [(&str, &str); 3] = [
    ("/9j/", "image/jpeg"),
    ("R0lGOD", "image/gif"),
    ("UklGR", "image/webp"),
];

pub(super) fn chat_request(
    request: ChatRequest<'_>,
) -> Result<ChatCompletionRequest<'_>, GatewayError> {
    let messages = request.messages.unwrap_or_default();
    if messages.is_empty() {
        let message = "`messages` is empty: the gateway loads and unloads no models";
        return Err(GatewayError::invalid_request(message, Some("messages")));
    }
    let is_streamed = request.stream != Some(false);
    let mut chat = ChatCompletionRequest {
        model: request.model,
        tools: request.tools,
        tool_choice: request.tool_choice,
        parallel_tool_calls: request.parallel_tool_calls,
        stream: Some(is_streamed),
        stream_options: is_streamed.then(|| StreamOptions {
            include_usage: Some(true),
            ..StreamOptions::default()
        }),
        ..ChatCompletionRequest::default()
    };
    if let Some(format) = request.format {
        chat.response_format = response_format(format)?;
    }
    let effort = match request.think.as_ref().map(Json::text) {
        None | Some("null" | "true") => None,
        Some("false") => Some(Json::new(&"none")),
        Some(_) => request.think,
    };
    if let Some(effort) = effort {
        chat.unknown.set("reasoning_effort", effort);
    }
    add_options(&mut chat, request.options.unwrap_or_default());
    let mut conversation = Conversation::default();
    for message in messages {
        conversation.add(message);
    }
    chat.messages = conversation.messages;
    Ok(chat)
}

/// Adds the options that model servers have. The others, such as `num_ctx`, are about loading the model.
fn add_options<'r>(chat: &mut ChatCompletionRequest<'r>, mut options: Options<'r>) {
    // A negative number means that there is none.
    let is_limit = |most: &Json<'_>| most.read::<f64>().is_ok_and(|most| most > 0.0);
    if let Some(most) = options.num_predict.take().filter(is_limit) {
        chat.unknown.set("max_tokens", most);
    }
    for name in SAME {
        if let Some(value) = options.unknown.get(name).filter(|value| !value.is_null()) {
            chat.unknown.set(name, value.clone());
        }
    }
}

fn response_format(format: Json<'_>) -> Result<Option<ResponseFormat<'_>>, GatewayError> {
    let (kind, schema) = match format.text() {
        "null" | "\"\"" => return Ok(None),
        "\"json\"" => ("json_object", None),
        text if text.starts_with('{') => {
            let form = BTreeMap::from([("name", Json::new(&"output")), ("schema", format)]);
            ("json_schema", Some(Json::new(&form)))
        }
        _ => {
            let message = "invalid `format`; it must be \"json\" or a JSON Schema";
            return Err(GatewayError::invalid_request(message, Some("format")));
        }
    };
    Ok(Some(ResponseFormat {
        kind: Some(kind.into()),
        json_schema: schema,
        ..ResponseFormat::default()
    }))
}

/// How many calls wait for their results: the last ones. So the work for each result is bounded.
const MOST_OPEN: usize = 1024;

/// The messages of the chat completions request.
#[derive(Default)]
struct Conversation<'r> {
    messages: Vec<openai::Message<'r>>,
    /// The names and ids of the last turn's calls without a result.
    open: VecDeque<(String, Cow<'r, str>)>,
    /// The number of calls.
    calls: usize,
}

impl<'r> Conversation<'r> {
    fn add(&mut self, given: Message<'r>) {
        let role = given.role.unwrap_or_default();
        let images = given.images.unwrap_or_default();
        let mut message = openai::Message {
            content: Some(content(given.content.unwrap_or_default(), &images)),
            reasoning_content: given.thinking.filter(|thinking| !thinking.is_empty()),
            ..openai::Message::default()
        };
        let mut calls = given.tool_calls.unwrap_or_default();
        if !matches!(&*role, "assistant" | "tool") {
            self.open.clear();
        }
        if !calls.is_empty() {
            let last = self.messages.last();
            if last.is_some_and(|last| last.role() != "assistant") {
                self.open.clear();
            }
            // Servers expect `null` rather than an empty text.
            let is_empty =
                |content: &Content<'_>| matches!(content, Content::Text(text) if text.is_empty());
            message.content = message.content.filter(|content| !is_empty(content));
        }
        for call in &mut calls {
            self.calls += 1;
            call.kind.get_or_insert_with(|| "function".into());
            call.id = call.id.take().filter(|id| !id.is_empty());
            // Not every client sends ids back. The templates of some models accept only nine letters and digits.
            let id = call
                .id
                .get_or_insert_with(|| format!("call{:05}", self.calls).into());
            let id = id.clone();
            if let Some(function) = &mut call.function {
                function.unknown.remove("index");
                let arguments = function.arguments.take();
                function.arguments = arguments.map(|arguments| match arguments {
                    CallArguments::Json(json) => CallArguments::Text(json.text().to_owned().into()),
                    text @ CallArguments::Text(_) => text,
                });
            }
            self.open.push_back((call.name().to_owned(), id));
            if self.open.len() > MOST_OPEN {
                self.open.pop_front();
            }
        }
        message.tool_calls = Some(calls).filter(|calls| !calls.is_empty());
        if &*role == "tool" {
            let given_id = given.tool_call_id.filter(|id| !id.is_empty());
            message.tool_call_id = self.call_of(given_id, given.tool_name.as_deref());
            if message.tool_call_id.is_none() {
                message.name = given.tool_name;
            }
        }
        message.role = Some(role);
        self.messages.push(message);
    }

    /// Returns the id of the call to which a result belongs: the first open one of the tool, or of all if the result names none.
    fn call_of(&mut self, given: Option<Cow<'r, str>>, name: Option<&str>) -> Option<Cow<'r, str>> {
        let mut open = self.open.iter();
        let place = match (&given, name) {
            (Some(given), _) => open.position(|(_, id)| id == given),
            (None, Some(name)) if !name.is_empty() => open.position(|(open, _)| open == name),
            (None, _) => Some(0),
        };
        let found = place.and_then(|place| self.open.remove(place));
        given.or(found.map(|(_, id)| id))
    }
}

fn content<'r>(text: Cow<'r, str>, images: &[Cow<'r, str>]) -> Content<'r> {
    if images.is_empty() {
        return Content::Text(text);
    }
    let mut parts = Vec::with_capacity(images.len() + 1);
    if !text.is_empty() {
        parts.push(text_part(text));
    }
    parts.extend(images.iter().map(|image| image_part(image)));
    Content::Parts(parts)
}

fn image_part(image: &str) -> ContentPart<'static> {
    let mut kinds = IMAGE_TYPES.into_iter();
    let kind = kinds.find(|(begin, _)| image.starts_with(begin));
    let kind = kind.map_or("image/png", |(_, kind)| kind);
    let url = format!("data:{kind};base64,{image}");
    let mut part = ContentPart {
        kind: Some("image_url".into()),
        ..ContentPart::default()
    };
    part.unknown
        .set("image_url", Json::new(&json!({"url": url})));
    part
}
