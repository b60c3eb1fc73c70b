//! Servers with the `OpenAI` API.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use plaincall::Stop;
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Content, Message as WireMessage,
    StreamOptions, Usage as WireUsage, read_error,
};
use plaincall_wire::{Json, ReadError};

use super::key::Key;
use super::refusal::{self, Asked};
use super::server::{Answered, EventStream, Server};
use super::{Finish, Model, ModelError, ModelErrorKind, ModelRequest, Reply, ReplyWriter, Usage};
use crate::http::{HttpSettings, Waits};

/// What stands behind the beginning of the addresses.
const PATH: &str = "/chat/completions";
/// The longest reply, thoughts too, in bytes.
const MOST_TEXT: usize = 64 << 20;
/// How long is waited for what the reply has cost, once it is complete.
const AFTERWARDS: Duration = Duration::from_secs(5);
/// A call in the old form.
const OLD_CALL: &str = "function_call";
/// Fields of the request that are not for others to set.
const OWN_FIELDS: [&str; 6] = ["model", "messages", "stream", "n", "tools", "functions"];

/// A model behind a server with the `OpenAI` API: Ollama, llama.cpp, vLLM, LM Studio, `OpenAI`, Gemini and many more.
///
/// The address is that of the API up to its version. Nothing is sent before a reply is read; what is wrong with the
/// settings is the error of the reply, and [`check`](Self::check) tells it before.
///
/// ```
/// use plaincall_agent::model::{Model, OpenAi};
///
/// let model = OpenAi::new("http://localhost:11434/v1", "qwen3")
///     .key("a secret")
///     .temperature(0.2);
/// assert_eq!(model.name(), "qwen3");
/// assert!(OpenAi::new("localhost:11434", "qwen3").check().is_err());
/// ```
#[derive(Clone)]
pub struct OpenAi(Arc<Client>);

#[derive(Clone)]
struct Client {
    server: Server,
    model: String,
    max_tokens: Option<u32>,
    fields: Vec<(String, Json<'static>)>,
}

impl OpenAi {
    /// A model of a server.
    pub fn new(url: impl Into<String>, model: impl Into<String>) -> Self {
        Self(Arc::new(Client {
            server: Server::new(url.into(), ("authorization", "Bearer ")),
            model: model.into(),
            max_tokens: None,
            fields: Vec::new(),
        }))
    }

    fn set(mut self, change: impl FnOnce(&mut Client)) -> Self {
        change(Arc::make_mut(&mut self.0));
        self
    }

    fn set_server(self, change: impl FnOnce(&mut Server)) -> Self {
        self.set(|client| client.server.set(change))
    }

    /// The key that the server wants, as `Authorization: Bearer …`.
    pub fn key(self, key: impl Into<Key>) -> Self {
        let key = key.into();
        self.set_server(|server| server.key = Some(key))
    }

    /// How much chance there is in the choice of words: 0 for none, where the server can do that.
    pub fn temperature(self, temperature: f64) -> Self {
        self.field("temperature", Json::new(&temperature))
    }

    /// How many tokens a reply may have at most, thoughts too. What a request asks for comes first.
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.set(|client| client.max_tokens = Some(tokens))
    }

    /// A field of the request, passed on as it is: sampling, reasoning, what a server has of its own. `null` leaves a
    /// field out, also one that would be sent else, such as `stream_options`.
    ///
    /// ```
    /// use plaincall_agent::model::{Json, OpenAi};
    ///
    /// let model = OpenAi::new("https://api.openai.com/v1", "gpt-5")
    ///     .field("reasoning_effort", Json::new(&"low"));
    /// ```
    pub fn field(self, name: impl Into<String>, value: Json<'static>) -> Self {
        let name = name.into();
        self.set(|client| {
            client.fields.retain(|(known, _)| *known != name);
            client.fields.push((name, value));
        })
    }

    /// A header of the request. Its value is kept secret like a key.
    pub fn header(self, name: impl Into<String>, value: impl Into<Key>) -> Self {
        let header = (name.into(), value.into());
        self.set_server(|server| server.headers.push(header))
    }

    /// How long is waited: by default ten minutes for the beginning of a reply, five between its pieces, an hour for all.
    pub fn waits(self, waits: Waits) -> Self {
        self.set_server(|server| server.waits = waits)
    }

    /// How connections are made.
    pub fn http(self, http: HttpSettings) -> Self {
        self.set_server(|server| server.http = http)
    }

    /// Whether it can be asked, as far as that can be known before.
    ///
    /// # Errors
    /// Says what is wrong with the address, the key, a header, a field or a proxy.
    pub fn check(&self) -> Result<(), ModelError> {
        self.0.server.check()?;
        let wrong = |message: String| Err(ModelError::new(ModelErrorKind::Refused, message));
        for (name, _) in &self.0.fields {
            if OWN_FIELDS.contains(&name.as_str()) {
                return wrong(format!(
                    "the field `{name}` of a request is not for settings: tools are told in the prompt, and the rest is set already"
                ));
            }
        }
        Ok(())
    }
}

impl fmt::Debug for OpenAi {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("OpenAi")
            .field("server", &self.0.server)
            .field("model", &self.0.model)
            .field("max_tokens", &self.0.max_tokens)
            .field("fields", &self.0.fields)
            .finish()
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.0.model
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let model = self.clone();
        Reply::new(|out| async move {
            model.check()?;
            let client = &model.0;
            let asked = client.server.asked(PATH, &client.model);
            let body = client.body(&request);
            drop(request);
            let answered = client.server.post(PATH, &[], body, &asked).await?;
            let mut reading = Reading {
                asked: &asked,
                out: &out,
                stops_anywhere: client.field("stop").is_some(),
                length: 0,
                finish: None,
            };
            let read = match answered {
                Answered::Whole(body) => reading.whole(&body).await,
                Answered::Stream(events) => reading.stream(*events).await,
            };
            read.map_err(|error| client.server.conceal(error))
        })
    }
}

impl Client {
    fn field(&self, name: &str) -> Option<&Json<'static>> {
        let found = self.fields.iter().find(|(known, _)| known == name);
        found
            .map(|(_, value)| value)
            .filter(|value| !value.is_null())
    }

    fn body(&self, request: &ModelRequest) -> Vec<u8> {
        let is_set = |name: &str| self.fields.iter().any(|(known, _)| known == name);
        let messages = request.messages.iter();
        let mut body = ChatCompletionRequest {
            model: Some(self.model.as_str().into()),
            messages: messages
                .map(|message| WireMessage::new(message.role.name(), &*message.text))
                .collect(),
            stream: Some(true),
            ..ChatCompletionRequest::default()
        };
        if !is_set("stream_options") {
            body.stream_options = Some(StreamOptions {
                include_usage: Some(true),
                ..StreamOptions::default()
            });
        }
        if let Some(tokens) = request.max_tokens.or(self.max_tokens) {
            // `OpenAI`'s reasoning models know the new name alone, and other servers the old one.
            let host = self.server.host().unwrap_or_default();
            let is_new = ["api.openai.com", ".openai.azure.com"];
            let name = if is_new.iter().any(|new| host.ends_with(new)) {
                "max_completion_tokens"
            } else {
                "max_tokens"
            };
            if !is_set(name) {
                body.unknown.set(name, Json::new(&tokens));
            }
        }
        for (name, value) in self.fields.iter().filter(|(_, value)| !value.is_null()) {
            body.unknown.set(name.as_str(), value.clone());
        }
        plaincall_wire::write_bytes(&body)
    }
}

/// A reply that is read.
struct Reading<'r> {
    asked: &'r Asked<'r>,
    out: &'r ReplyWriter,
    /// Whether words were set at which the model stops: then a natural end may be one in the middle.
    stops_anywhere: bool,
    length: usize,
    finish: Option<Finish>,
}

impl Reading<'_> {
    async fn stream(&mut self, mut events: EventStream) -> Result<Finish, ModelError> {
        loop {
            let next = events.next(self.asked);
            // What goes wrong behind the end of a reply changes nothing about it.
            let event = match &self.finish {
                None => next.await?,
                Some(_) => match tokio::time::timeout(AFTERWARDS, next).await {
                    Ok(Ok(event)) => event,
                    Ok(Err(_)) | Err(_) => None,
                },
            };
            let Some(event) = event else {
                return self
                    .finish
                    .take()
                    .ok_or_else(|| self.broken("it ended in the middle"));
            };
            let read = if event.name.as_deref() == Some("error") {
                Err(self.error(event.data.as_bytes()))
            } else {
                self.chunk(&event.data).await
            };
            match read {
                Ok(true) => {
                    return Ok(self.finish.take().unwrap_or(Finish::new(Stop::Broken)));
                }
                Ok(false) => {}
                Err(error) => match self.finish.take() {
                    Some(finish) => return Ok(finish),
                    None => return Err(error),
                },
            }
        }
    }

    /// Takes the data of an event; whether it is the last.
    async fn chunk(&mut self, data: &str) -> Result<bool, ModelError> {
        let chunk = ChatCompletionChunk::read(data).map_err(|error| self.unreadable(&error))?;
        let Some(chunk) = chunk else {
            return Ok(true);
        };
        let is_error = chunk.error.as_ref().is_some_and(|error| !error.is_null());
        if is_error || chunk.object.as_deref() == Some("error") {
            return Err(self.error(data.as_bytes()));
        }
        // Some servers tell the usage in each chunk.
        if let Some(usage) = &chunk.usage {
            self.out.usage(usage_of(usage)).await;
        }
        let ours = |number: Option<u64>| number.unwrap_or_default() == 0;
        for choice in chunk.choices().iter().filter(|choice| ours(choice.index)) {
            if self.finish.is_some() {
                continue;
            }
            let delta = choice.delta.as_ref();
            let old = delta.and_then(|delta| delta.unknown.get(OLD_CALL));
            if !choice.calls().is_empty() || old.is_some_and(|call| !call.is_null()) {
                return Err(refusal::native_call(self.asked));
            }
            self.think(&choice.thought()).await?;
            let refused = delta.and_then(|delta| delta.refusal.as_deref());
            self.say(refused.unwrap_or_default()).await?;
            self.say(&choice.content()).await?;
            if let Some(reason) = choice.finished() {
                self.finish = Some(self.finish_of(reason));
            }
        }
        Ok(false)
    }

    async fn whole(&mut self, body: &[u8]) -> Result<Finish, ModelError> {
        let completion: ChatCompletion<'_> =
            plaincall_wire::read(body).map_err(|error| self.unreadable(&error))?;
        if let Some(usage) = &completion.usage {
            self.out.usage(usage_of(usage)).await;
        }
        let Some(choice) = completion.choices().first() else {
            let error = completion.unknown.get("error");
            return Err(match error.filter(|error| !error.is_null()) {
                Some(_) => self.error(body),
                None => self.broken("it holds no reply"),
            });
        };
        if let Some(message) = &choice.message {
            let old = message.unknown.get(OLD_CALL);
            if !message.calls().is_empty() || old.is_some_and(|call| !call.is_null()) {
                return Err(refusal::native_call(self.asked));
            }
            self.think(message.thought().unwrap_or_default()).await?;
            for thought in message.content.iter().flat_map(Content::thinking) {
                self.think(&thought).await?;
            }
            self.say(message.refusal.as_deref().unwrap_or_default())
                .await?;
            let content = message.content.as_ref().map(Content::text);
            self.say(&content.unwrap_or_default()).await?;
        }
        let reason = choice.finish_reason.as_deref().unwrap_or_default();
        Ok(match reason {
            "" => Finish::new(Stop::Broken),
            reason => self.finish_of(reason),
        })
    }

    fn finish_of(&self, reason: &str) -> Finish {
        let mut finish = Finish::by_reason(reason);
        if self.stops_anywhere && finish.stop == Stop::Natural {
            finish.stop = Stop::Broken;
        }
        finish
    }

    async fn say(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.text(text).await;
        }
        Ok(())
    }

    async fn think(&mut self, text: &str) -> Result<(), ModelError> {
        self.count(text)?;
        if !text.is_empty() {
            self.out.reasoning(text).await;
        }
        Ok(())
    }

    fn count(&mut self, text: &str) -> Result<(), ModelError> {
        self.length += text.len();
        if self.length > MOST_TEXT {
            return Err(self.broken(&format!("it has more than {MOST_TEXT} bytes")));
        }
        Ok(())
    }

    fn broken(&self, what: &str) -> ModelError {
        let server = self.asked.server();
        let message = format!("the answer of {server} is no whole reply: {what}");
        ModelError::new(ModelErrorKind::Broken, message)
    }

    fn unreadable(&self, error: &ReadError) -> ModelError {
        let server = self.asked.server();
        let message = format!("the answer of {server} cannot be read: {error}");
        ModelError::new(ModelErrorKind::Broken, message)
    }

    /// What the server tells in the place of a reply, or in the middle of it.
    fn error(&self, body: &[u8]) -> ModelError {
        refusal::by_words(None, &read_error(body), self.asked)
    }
}

fn usage_of(usage: &WireUsage<'_>) -> Usage {
    Usage {
        input: usage.prompt_tokens.unwrap_or_default(),
        cached: usage.cached_tokens(),
        output: usage.completion_tokens.unwrap_or_default(),
    }
}
