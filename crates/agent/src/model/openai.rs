//! Servers with the `OpenAI` API.

use std::sync::Arc;

use plaincall::Stop;
use plaincall_grammar::Constrain;
use plaincall_wire::Json;
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Content, FunctionDefinition,
    Message as WireMessage, StreamOptions, Tool as WireTool, ToolCall, Usage as WireUsage,
    sets_stop_sequences,
};
use plaincall_wire::paths;
use plaincall_wire::sse::Event;

use super::answer::{Answered, EventStream};
use super::client::{Api, Client};
use super::constrained::{Constrained, Fields};
use super::key::Key;
use super::response_reader::ResponseReader;
use super::{
    Finish, Model, ModelError, ModelRequest, NativeMessage, NativeRequest, Reply, Role, Usage,
};
use plaincall_http::{HttpSettings, Waits};

const API: Api = Api {
    path: paths::CHAT,
    key_header: ("authorization", "Bearer "),
    fixed: None,
    own_fields: &["model", "messages", "stream", "n", "tools", "functions"],
    supports_native: true,
};
const OLD_CALL: &str = "function_call";

const NO_REPLY: &str = "it contains no reply";
/// Hosts that use `max_completion_tokens`.
const NEW_NAMES: [&str; 2] = ["api.openai.com", ".openai.azure.com"];

/// A client for servers with the `OpenAI` API: Ollama, llama.cpp, vLLM, LM Studio, `OpenAI`, Gemini and many more.
///
/// The URL ends with the version of the API.
///
/// ```
/// use plaincall_agent::model::{Json, Model, OpenAi};
///
/// let model = OpenAi::new("http://localhost:11434/v1", "qwen3")
///     .key("a secret")
///     .temperature(0.2)
///     .field("reasoning_effort", Json::new(&"low"));
/// assert_eq!(model.name(), "qwen3");
/// assert!(OpenAi::new("localhost:11434", "qwen3").check().is_err());
/// ```
#[derive(Clone)]
pub struct OpenAi(pub(super) Arc<Client>, pub(super) Constrained);

client!(
    OpenAi,
    "Sets the API key, sent as `Authorization: Bearer …`."
);

impl OpenAi {
    /// Creates a client.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        let client = Client::new(&API, url.into(), model.into());
        Self(Arc::new(client), Constrained::default())
    }

    pub(super) fn body(&self, request: &ModelRequest, constraint: Option<&Fields>) -> Vec<u8> {
        let client = &*self.0;
        let messages = request.messages.iter();
        let mut body = ChatCompletionRequest {
            model: Some(client.model.as_str().into()),
            messages: messages
                .map(|message| WireMessage::new(message.role.name(), &*message.text))
                .collect(),
            stream: Some(true),
            ..ChatCompletionRequest::default()
        };
        if let Some(native) = &request.native {
            body.messages = native.messages.iter().map(message).collect();
            body.tools = Some(tools(native));
        }
        if let Some(seed) = request.seed.filter(|_| client.field("seed").is_none()) {
            body.unknown.set("seed", Json::new(&seed));
        }
        if client.field("stream_options").is_none() {
            body.stream_options = Some(StreamOptions {
                include_usage: Some(true),
                ..StreamOptions::default()
            });
        }
        if let Some(tokens) = request.max_tokens.or(client.max_tokens) {
            // `OpenAI`'s reasoning models accept only the new name, and other servers only the old one.
            let host = client.host().unwrap_or_default();
            let name = if NEW_NAMES.iter().any(|new| host.ends_with(new)) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            if client.field(name).is_none() {
                body.unknown.set(name, Json::new(&tokens));
            }
        }
        client.put_fields(&mut body.unknown);
        for (name, value) in constraint.into_iter().flatten() {
            body.unknown.set(name.as_str(), Json::new(value));
        }
        plaincall_wire::write_bytes(&body)
    }
}

fn message(message: &NativeMessage) -> WireMessage<'_> {
    match message {
        NativeMessage::System(text) => WireMessage::new(Role::System.name(), text.as_str()),
        NativeMessage::User(text) => WireMessage::new(Role::User.name(), text.as_str()),
        NativeMessage::Assistant { text, calls } => {
            let calls = calls.iter().map(|call| {
                ToolCall::new(
                    call.id.as_str(),
                    call.name.as_str(),
                    call.arguments.as_str(),
                )
            });
            let calls: Vec<ToolCall<'_>> = calls.collect();
            WireMessage {
                tool_calls: (!calls.is_empty()).then_some(calls),
                ..WireMessage::new(Role::Assistant.name(), text.as_str())
            }
        }
        NativeMessage::Result { id, text } => WireMessage {
            tool_call_id: Some(id.as_str().into()),
            ..WireMessage::new("tool", text.as_str())
        },
    }
}

fn tools(request: &NativeRequest) -> Json<'static> {
    let tools = request.tools.iter().map(|tool| WireTool {
        kind: Some("function".into()),
        function: Some(FunctionDefinition {
            name: Some(tool.name.as_str().into()),
            description: Some(tool.description.as_str().into()),
            parameters: Some(Json::new(&tool.parameters)),
            ..FunctionDefinition::default()
        }),
        ..WireTool::default()
    });
    let tools: Vec<String> = tools.map(|tool| plaincall_wire::write(&tool)).collect();
    Json::parse(&format!("[{}]", tools.join(",")))
        .map_or_else(|_| Json::default(), Json::into_owned)
}

struct Answer<'r> {
    reader: ResponseReader<'r>,
    /// Whether stop sequences are set. Then a natural end may be in the middle of a reply.
    stops_anywhere: bool,
    /// Whether a chunk of a stream had a choice.
    has_choice: bool,
}

impl<'r> Answer<'r> {
    fn new(client: &Client, reader: ResponseReader<'r>) -> Self {
        Self {
            reader,
            stops_anywhere: sets_stop_sequences(client.fields()),
            has_choice: false,
        }
    }

    /// Handles an event. Returns whether it is the last.
    async fn event(&mut self, event: &Event<'_>) -> Result<bool, ModelError> {
        let (reader, data) = (&mut self.reader, &*event.data);
        if event.name.as_deref() == Some("error") {
            return Err(reader.error(data.as_bytes()));
        }
        let chunk = ChatCompletionChunk::read(data).map_err(|error| reader.unreadable(&error))?;
        let Some(chunk) = chunk else {
            let none = || reader.broken(NO_REPLY);
            return self.has_choice.then_some(true).ok_or_else(none);
        };
        if chunk.is_error() {
            return Err(reader.error(data.as_bytes()));
        }
        self.has_choice |= !chunk.choices().is_empty();
        // Some servers report usage in each chunk.
        if let Some(usage) = &chunk.usage {
            reader.cost(usage_of(usage)).await;
        }
        let ours = |number: Option<u64>| number.unwrap_or_default() == 0;
        for choice in chunk.choices().iter().filter(|choice| ours(choice.index)) {
            if reader.finish.is_some() {
                break;
            }
            let delta = choice.delta.as_ref();
            let old = delta.and_then(|delta| delta.unknown.get(OLD_CALL));
            if old.is_some_and(|call| !call.is_null()) {
                return Err(reader.native_call());
            }
            reader.calls(choice.calls())?;
            reader.reasoning(&choice.thought()).await?;
            let refused = delta.and_then(|delta| delta.refusal.as_deref());
            reader.text(refused.unwrap_or_default()).await?;
            reader.text(&choice.content()).await?;
            let stops_anywhere = self.stops_anywhere;
            if let Some(reason) = choice.finished() {
                reader.finish(finish_of(reason, stops_anywhere)).await;
            }
        }
        Ok(false)
    }

    async fn whole(mut self, body: &[u8]) -> Result<Finish, ModelError> {
        let reader = &mut self.reader;
        let completion: ChatCompletion<'_> =
            plaincall_wire::read(body).map_err(|error| reader.unreadable(&error))?;
        if let Some(usage) = &completion.usage {
            reader.cost(usage_of(usage)).await;
        }
        let Some(choice) = completion.choices().first() else {
            let error = completion.unknown.get("error");
            return Err(match error.filter(|error| !error.is_null()) {
                Some(_) => reader.error(body),
                None => reader.broken(NO_REPLY),
            });
        };
        if let Some(message) = &choice.message {
            let old = message.unknown.get(OLD_CALL);
            if old.is_some_and(|call| !call.is_null()) {
                return Err(reader.native_call());
            }
            for call in message.calls() {
                // An index means nothing here.
                reader.calls(&[ToolCall {
                    index: None,
                    ..call.clone()
                }])?;
            }
            reader
                .reasoning(message.thought().unwrap_or_default())
                .await?;
            for thought in message.content.iter().flat_map(Content::thinking) {
                reader.reasoning(&thought).await?;
            }
            let refused = message.refusal.as_deref();
            reader.text(refused.unwrap_or_default()).await?;
            let content = message.content.as_ref().map(Content::text);
            reader.text(&content.unwrap_or_default()).await?;
        }
        let finish = match choice.finish_reason.as_deref().unwrap_or_default() {
            "" => Finish::new(Stop::Broken),
            reason => finish_of(reason, self.stops_anywhere),
        };
        reader.finish(finish.clone()).await;
        Ok(finish)
    }
}

fn finish_of(reason: &str, stops_anywhere: bool) -> Finish {
    let mut finish = Finish::by_reason(reason);
    if stops_anywhere && finish.stop == Stop::Natural {
        finish.stop = Stop::Broken;
    }
    finish
}

fn usage_of(usage: &WireUsage<'_>) -> Usage {
    let output = usage.completion_tokens.unwrap_or_default();
    Usage::new(usage.prompt_tokens.unwrap_or_default(), output).cached(usage.cached_tokens())
}
