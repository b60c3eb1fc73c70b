//! Servers with the Anthropic API.

use std::sync::Arc;

use plaincall::Stop;
use plaincall_grammar::Constrain;
use plaincall_wire::anthropic::{
    Content, ContentBlock, Message as WireMessage, MessageResponse, MessagesRequest, StreamEvent,
    StreamUpdate, Usage as WireUsage,
};
use plaincall_wire::sse::Event;
use plaincall_wire::{Json, paths};
use serde_json::json;

use super::answer::{Answered, EventStream};
use super::client::{Api, Client};
use super::key::Key;
use super::response_reader::ResponseReader;
use super::server_error::Asked;
use super::{Finish, Message, Model, ModelError, ModelRequest, Reply, Role, Usage};
use plaincall_http::{HttpSettings, Waits};

/// The default URL.
const URL: &str = "https://api.anthropic.com/v1";
const API: Api = Api {
    path: paths::MESSAGES,
    key_header: ("x-api-key", ""),
    fixed: Some(("anthropic-version", "2023-06-01")),
    own_fields: &[
        "model",
        "messages",
        "system",
        "stream",
        "tools",
        "tool_choice",
    ],
    supports_native: false,
};
/// The default limit of reply tokens, which the API requires.
const MAX_TOKENS: u32 = 8192;

/// A client for the Anthropic API, with streaming and prompt caching. Default limit of a reply: 8192 tokens.
#[derive(Clone)]
pub struct Anthropic(Arc<Client>);

client!(Anthropic, "Sets the API key, sent as `x-api-key`.");

impl Anthropic {
    /// Creates a client for Anthropic's server.
    pub fn new(model: impl Into<String>) -> Self {
        Self::at(URL, model)
    }

    /// Creates a client for another server with this API. The URL ends with the version.
    pub fn at(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self(Arc::new(Client::new(&API, url.into(), model.into())))
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        let client = &*self.0;
        let (system, messages) = arranged(&request.messages);
        let max_tokens = request.max_tokens.or(client.max_tokens);
        let mut body = MessagesRequest {
            model: Some(client.model.as_str().into()),
            max_tokens: Some(u64::from(max_tokens.unwrap_or(MAX_TOKENS))),
            system: (!system.is_empty()).then_some(Content::Blocks(system)),
            messages,
            stream: Some(true),
            ..MessagesRequest::default()
        };
        client.put_fields(&mut body.unknown);
        plaincall_wire::write_bytes(&body)
    }

    /// The API has no grammars.
    #[allow(clippy::unused_self, reason = "the other client has a setting")]
    fn constraint(&self) -> Constrain {
        Constrain::Never
    }

    async fn send(&self, request: ModelRequest, asked: &Asked<'_>) -> Result<Answered, ModelError> {
        let body = self.body(&request);
        drop(request);
        Answered::open(self.0.post(body, asked).await?, asked).await
    }
}

/// Converts the messages for the API: adjacent messages of a role become blocks of one, none is blank, and a final message
/// of the model has no trailing whitespace.
fn arranged(messages: &[Message]) -> (Vec<ContentBlock<'_>>, Vec<WireMessage<'_>>) {
    let is_system = |message: &&Message| message.role == Role::System;
    let words: Vec<&Message> = messages.iter().take_while(is_system).collect();
    let rest = messages.get(words.len()..).unwrap_or_default();
    let has_text = |text: &str| !text.trim().is_empty();
    let words = words.into_iter().map(|message| &*message.text);
    let words = words.filter(|text| has_text(text));
    let mut system: Vec<ContentBlock<'_>> = words.map(ContentBlock::text).collect();
    let mut turns: Vec<(&str, Vec<ContentBlock<'_>>)> = Vec::new();
    let mut rest = rest
        .iter()
        .filter(|message| has_text(&message.text))
        .peekable();
    while let Some(message) = rest.next() {
        // The API has no system messages in the conversation.
        let role = match message.role {
            Role::System | Role::User => Role::User.name(),
            Role::Assistant => Role::Assistant.name(),
        };
        let text = match message.role {
            Role::Assistant if rest.peek().is_none() => message.text.trim_end(),
            _ => &message.text,
        };
        let block = ContentBlock::text(text);
        match turns.last_mut() {
            Some((last, blocks)) if *last == role => blocks.push(block),
            _ => turns.push((role, vec![block])),
        }
    }
    let last = turns.last_mut().and_then(|(_, blocks)| blocks.last_mut());
    for block in system.last_mut().into_iter().chain(last) {
        let kept = Json::new(&json!({"type": "ephemeral"}));
        block.unknown.set("cache_control", kept);
    }
    let turns = turns.into_iter().map(|(role, blocks)| WireMessage {
        role: Some(role.into()),
        content: Some(Content::Blocks(blocks)),
        ..WireMessage::default()
    });
    (system, turns.collect())
}

struct Answer<'r> {
    reader: ResponseReader<'r>,
    usage: WireUsage<'static>,
}

impl<'r> Answer<'r> {
    fn new(_: &Client, reader: ResponseReader<'r>) -> Self {
        Self {
            reader,
            usage: WireUsage::default(),
        }
    }

    /// Handles an event. Returns whether it is the last.
    async fn event(&mut self, event: &Event<'_>) -> Result<bool, ModelError> {
        let data = event.data.as_bytes();
        if event.name.as_deref() == Some("error") {
            return Err(self.reader.error(data));
        }
        let event: StreamEvent<'_> =
            plaincall_wire::read(data).map_err(|error| self.reader.unreadable(&error))?;
        match event.update() {
            StreamUpdate::Start(message) => self.cost(message.usage.as_ref()).await,
            StreamUpdate::BlockStart(block) => self.block(block).await?,
            StreamUpdate::Text(text) => self.reader.text(text).await?,
            StreamUpdate::Thinking(text) => self.reader.reasoning(text).await?,
            StreamUpdate::InputJson => return Err(self.reader.native_call()),
            StreamUpdate::Ending { stop_reason, usage } => {
                self.cost(usage).await;
                if let Some(reason) = stop_reason {
                    self.reader.finish = Some(Finish::by_reason(reason));
                }
            }
            StreamUpdate::Stop => return Ok(true),
            StreamUpdate::Error => return Err(self.reader.error(data)),
            _ => {}
        }
        Ok(false)
    }

    async fn whole(mut self, body: &[u8]) -> Result<Finish, ModelError> {
        let response: MessageResponse<'_> =
            plaincall_wire::read(body).map_err(|error| self.reader.unreadable(&error))?;
        let Some(blocks) = &response.content else {
            let is_error = response.unknown.get("error").is_some();
            return Err(if is_error {
                self.reader.error(body)
            } else {
                self.reader.broken("it contains no reply")
            });
        };
        self.cost(response.usage.as_ref()).await;
        for block in blocks {
            self.block(block).await?;
        }
        let reason = response.stop_reason.as_deref();
        Ok(reason.map_or(Finish::new(Stop::Broken), Finish::by_reason))
    }

    async fn block(&mut self, block: &ContentBlock<'_>) -> Result<(), ModelError> {
        if matches!(block.kind.as_deref(), Some("tool_use" | "server_tool_use")) {
            return Err(self.reader.native_call());
        }
        let thought = block.thinking.as_deref();
        self.reader.reasoning(thought.unwrap_or_default()).await?;
        let text = block.text.as_deref();
        self.reader.text(text.unwrap_or_default()).await
    }

    async fn cost(&mut self, usage: Option<&WireUsage<'_>>) {
        if let Some(usage) = usage {
            self.usage.update(usage);
            let cached = self.usage.cache_read_input_tokens;
            let output = self.usage.output_tokens.unwrap_or_default();
            let usage = Usage::new(self.usage.all_input_tokens(), output);
            self.reader
                .cost(usage.cached(cached.unwrap_or_default()))
                .await;
        }
    }
}
