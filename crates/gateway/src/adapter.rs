//! The gateway as a function of bytes, without I/O.

use std::collections::HashSet;
#[cfg(feature = "server")]
use std::time::Duration;

use bytes::Bytes;
use memchr::memmem;
use plaincall_grammar::{Engine, GrammarError};
use plaincall_tool::definitions::ChangedTool;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionRequest};
use plaincall_wire::sse::Limits;

use crate::api::{ClientApi, ClientRequest, Notes, split_index};
use crate::constraint::Constraint;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::exchange::Exchange;
use crate::key::Secret;
use crate::reply::{Flow, Next, Reply};
use crate::settings::{ArgumentMode, ModelSettings, ToolMode};
use crate::tool_cache::{ShortBody, ToolCache};
use crate::translate::{Translation, native, plain_plan, translate};
use plaincall_config::for_name;

/// The maximum number of JSON values in a request body. A parsed value can take a hundred times its length. A thousand tools
/// with a hundred fields each stay far below this limit.
const MAX_VALUES: usize = 250_000;
/// The maximum size of a model server's answer that is not streamed, in bytes.
const MAX_ANSWER: usize = 64 << 20;
/// The length of a request and its reply, in bytes, from which on reading the reply may take long.
#[cfg(feature = "server")]
const MAX_QUICK: usize = 32 << 10;
/// Fields that model servers may reject if there are no tools, even if they are empty or `null`.
const TOOL_FIELDS: [&str; 5] = [
    "\"tools\"",
    "\"tool_choice\"",
    "\"parallel_tool_calls\"",
    "\"functions\"",
    "\"function_call\"",
];
/// A field that a client may have set to `null`.
const NO_FORMAT: &[u8] = b"\"response_format\":null";
/// The initial room for the fixed part of a prompt, in bytes.
const PROMPT_ROOM: usize = 4 << 10;

/// Converts requests of clients to plain text, and replies back, as bytes: for programs with their own server.
///
/// It does no I/O and reads no clock. [`Gateway`](crate::Gateway) is this adapter with a server.
///
/// ```
/// use plaincall_gateway::{ModelSettings, Secret};
/// use plaincall_gateway::translation::{Adapter, Ask, AskEnd, Host};
///
/// let adapter = Adapter::new(Secret::new(*b"the same secret in all instances"), ModelSettings::default());
/// let body = br#"{"messages":[{"role":"user","content":"Add."}],"tools":[{"type":"function","function":{"name":"add",
///     "parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]}"#;
/// let host = Host::new(Secret::new("random bytes"), 1_800_000_000);
/// let Ask::Asked(mut asked) = adapter.ask("/v1/chat/completions", body, host) else { panic!("it offers a tool") };
///
/// // Send `asked.body()` to the model server's `/v1/chat/completions`, and feed its answer.
/// asked.feed(br#"{"choices":[{"message":{"content":"!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END"},"finish_reason":"stop"}]}"#);
/// assert_eq!(asked.end(None), AskEnd::Done);
/// let response: serde_json::Value = serde_json::from_slice(&asked.take())?;
/// assert_eq!(response["choices"][0]["message"]["tool_calls"][0]["function"]["arguments"], r#"{"a":5}"#);
/// # Ok::<(), serde_json::Error>(())
/// ```
#[derive(Debug)]
pub struct Adapter {
    secret: Secret,
    models: Vec<(String, ModelSettings)>,
    other_models: ModelSettings,
    stream_limits: Limits,
    tools: ToolCache,
}

/// The values that the host of an [`Adapter`] provides for a request.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Host {
    /// At least 16 random bytes, used for this request only.
    pub seed: Secret,
    /// The time in seconds since 1970.
    pub now: u64,
}

impl Host {
    /// The values for one request.
    pub const fn new(seed: Secret, now: u64) -> Self {
        Self { seed, now }
    }
}

/// The result of [`Adapter::ask`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Ask {
    /// No reply to the request is changed. In text mode it has no tools and no calls; in native mode it has no tool that can be
    /// called, or requests several answers or log probabilities. Forward it and its answer unchanged.
    Unchanged,
    /// As [`Unchanged`](Self::Unchanged), but the model server knows the model by another name
    /// ([`ModelSettings::upstream_model`]), or fields were added or removed. Forward this body, and its answer unchanged.
    Renamed(Vec<u8>),
    /// The request was converted.
    Asked(Box<Asked>),
    /// The request is rejected. [`ClientApi::error_body`] returns the body of the response.
    Refused(GatewayError),
}

/// The request and the step that follows, with the properties of the client's request for logs.
#[derive(Debug)]
#[cfg_attr(
    not(feature = "server"),
    expect(dead_code, reason = "only the server has a log")
)]
pub(crate) struct Prepared {
    /// The requested model.
    pub(crate) model: String,
    pub(crate) is_streamed: bool,
    pub(crate) ask: Ask,
}

/// A converted request whose reply is being read.
#[derive(Debug)]
pub struct Asked {
    changed: Vec<ChangedTool>,
    /// The request that is sent next, or was sent. A repair round adds to it.
    body: Bytes,
    /// The length of what determines the model's prompt: the request in text mode, tools and messages in native mode.
    #[cfg(feature = "server")]
    pub(crate) prompt_bytes: usize,
    constraint: Option<Constraint>,
    /// The request without a grammar, until the model server has begun to answer.
    unconstrained: Option<Bytes>,
    exchange: Exchange,
    /// Whether the client asked for an event stream.
    is_streamed: bool,
    /// Whether the model server's answer is an event stream.
    is_stream: bool,
    /// The answer, if it is not.
    answer: Vec<u8>,
    /// Whether the answer exceeded the limit.
    is_too_long: bool,
    /// The length of the request and of the answer so far, in bytes.
    #[cfg(feature = "server")]
    length: usize,
}

/// The next step after an answer of the model server has ended.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum AskEnd {
    /// The reply is complete.
    Done,
    /// The model is asked to repair its reply: send [`Asked::body`], and feed the answer.
    Again,
    /// The reply ends with an error. If nothing has been sent, respond with its status and [`ClientApi::error_body`].
    /// Otherwise its event is in [`Asked::take`].
    Refused(GatewayError),
}

impl Adapter {
    /// Creates an adapter. Instances that serve the same conversations need the same secret.
    pub fn new(secret: Secret, other_models: ModelSettings) -> Self {
        Self {
            secret,
            models: Vec::new(),
            other_models,
            stream_limits: Limits::default(),
            tools: ToolCache::new(),
        }
    }

    /// Sets the settings for models by name. `*` matches any characters. A name without `*` takes precedence, then the
    /// one with the most other characters.
    #[must_use]
    pub fn models(mut self, models: Vec<(String, ModelSettings)>) -> Self {
        self.models = models;
        self
    }

    /// Sets the maximum sizes of a line and an event in the model server's stream.
    #[must_use]
    pub fn stream_limits(mut self, limits: Limits) -> Self {
        self.stream_limits = limits;
        self
    }

    /// Converts a client's request (`spec/gateway.md` 1). The path selects the API.
    pub fn ask(&self, path: &str, body: &[u8], host: Host) -> Ask {
        let Some(api) = ClientApi::of_path(path) else {
            let message = format!("unknown path {path}");
            return Ask::Refused(GatewayError::invalid_request(message, None).status(404));
        };
        self.prepare(api, body, host).ask
    }

    fn settings(&self, model: &str) -> &ModelSettings {
        for_name(&self.models, model).unwrap_or(&self.other_models)
    }

    pub(crate) fn prepare(&self, api: ClientApi, body: &[u8], host: Host) -> Prepared {
        let mode = |model: &str| self.settings(model).mode;
        let short = match api {
            ClientApi::Chat => self.tools.without_known(body),
            ClientApi::Messages | ClientApi::Responses | ClientApi::Ollama => None,
        };
        let read = check_values(body).and_then(|()| {
            let known = short.as_ref().and_then(ShortBody::read);
            known.map_or_else(
                || api.read(body, mode),
                |chat| Ok(ClientRequest::chat(chat)),
            )
        });
        match read {
            Ok(request) => {
                let model = request.chat.model.as_deref().unwrap_or_default();
                Prepared {
                    model: model.to_owned(),
                    is_streamed: request.chat.is_streamed(),
                    ask: self
                        .convert(request, body, host)
                        .unwrap_or_else(Ask::Refused),
                }
            }
            Err(error) => Prepared {
                model: String::new(),
                is_streamed: false,
                ask: Ask::Refused(error),
            },
        }
    }

    fn convert(
        &self,
        request: ClientRequest<'_>,
        body: &[u8],
        host: Host,
    ) -> Result<Ask, GatewayError> {
        let ClientRequest { mut chat, notes } = request;
        let is_chat = matches!(notes, Notes::Chat(_));
        let is_stream = chat.is_streamed();
        let model = chat.model.as_deref().unwrap_or_default();
        let settings = self.settings(model);
        let name = settings.upstream_model.as_ref();
        let is_text = settings.mode == ToolMode::Text;
        let has_defaults = settings.add_defaults(&mut chat);
        let mut of_request = settings.for_request(&chat);
        if notes.has_whole_arguments() && settings.arguments != ArgumentMode::Checked {
            of_request.to_mut().arguments = ArgumentMode::Checked;
        }
        let settings = &*of_request;
        let (mut upstream, mut plan) = match translate(chat, settings, &self.secret, &self.tools)? {
            Translation::Changed { upstream, plan } => (upstream, plan),
            Translation::Unchanged(mut chat) if is_chat => {
                if let Some(name) = name {
                    chat.model = Some(name.clone().into());
                } else if !(has_defaults || is_text && has_tool_fields(body)) {
                    return Ok(Ask::Unchanged);
                }
                return Ok(Ask::Renamed(plaincall_wire::write_bytes(&chat)));
            }
            Translation::Unchanged(mut chat) => {
                if is_text {
                    (chat.messages, _) = native::complete_messages(chat.messages, settings);
                }
                let plan = plain_plan(&chat, settings, &self.secret, &self.tools)?;
                (chat, Box::new(plan))
            }
        };
        if let Some(name) = name {
            upstream.model = Some(name.clone().into());
        }
        let is_native = !is_text;
        let functions = if is_native && !is_chat {
            native::complete(&mut upstream, settings)?
        } else {
            HashSet::new()
        };
        // In native mode, the model server gets what it can use, with the names and schemas of the client.
        let is_function = |tool: &ChangedTool| {
            let place = split_index(&tool.reason.at).0.parse();
            place.is_ok_and(|place: usize| functions.contains(&place))
        };
        let is_changed = |tool: &&ChangedTool| !is_native || !is_chat && !is_function(tool);
        let changed = plan.offer.changed().iter().filter(is_changed);
        let mut changed: Vec<ChangedTool> = changed.cloned().collect();
        if is_native {
            plan.counts = Counts::of_changed(&changed);
        }
        for tool in &mut changed {
            tool.reason.at = notes.tool_pointer(&tool.reason.at);
        }
        let word = host.seed.word(&[b"answer"]);
        let encoder = notes.encoder(&word, host.now);
        // References multiply the work for a short schema.
        #[cfg(feature = "server")]
        let length = match memmem::find(body, b"\"$ref\"") {
            Some(_) => MAX_QUICK,
            None => body.len(),
        };
        let body: Bytes = if is_native && is_chat && name.is_none() && !has_defaults {
            body.to_vec()
        } else {
            // About as long as the client's, so that it is not copied while it grows.
            let mut written = Vec::with_capacity(body.len() + PROMPT_ROOM);
            plaincall_wire::write_to(&upstream, &mut written);
            written
        }
        .into();
        #[cfg(feature = "server")]
        let prompt_bytes = if is_native {
            let mut prompt = plaincall_wire::write_bytes(&upstream.tools);
            plaincall_wire::write_to(&upstream.messages, &mut prompt);
            prompt.len()
        } else {
            body.len()
        };
        let constraint = Constraint::of(&plan, &upstream);
        let reply = Reply::new(*plan, host.seed, encoder);
        Ok(Ask::Asked(Box::new(Asked {
            changed,
            body,
            #[cfg(feature = "server")]
            prompt_bytes,
            constraint,
            unconstrained: None,
            exchange: Exchange::new(reply, self.stream_limits),
            is_streamed: is_stream,
            is_stream,
            answer: Vec::new(),
            is_too_long: false,
            #[cfg(feature = "server")]
            length,
        })))
    }
}

impl Asked {
    /// Returns the body of the next request to the model server.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Adds a grammar to the next request, and to those of repair rounds: this engine then constrains the reply
    /// (`spec/gateway.md` 12). Returns whether the request has one; it has none in native mode, if no call is allowed, or if the
    /// client constrains the reply itself.
    ///
    /// # Errors
    /// Returns an error if the tools have no grammar. The request stays as it is.
    pub fn constrain(&mut self, engine: Engine) -> Result<bool, GrammarError> {
        let Some(constraint) = &self.constraint else {
            return Ok(false);
        };
        // A field must not be in the request twice.
        if memmem::find(&self.body, NO_FORMAT).is_some() {
            return Ok(false);
        }
        let members = constraint.members(engine)?;
        let Some(open) = self.body.strip_suffix(b"}") else {
            return Ok(false);
        };
        let body = [open, b",", members.as_bytes(), b"}"].concat();
        self.unconstrained = Some(std::mem::replace(&mut self.body, body.into()));
        self.add_counts(Counts {
            constrained: 1,
            ..Counts::default()
        });
        Ok(true)
    }

    /// Removes the grammar again, because the model server rejected it. Returns `false` if there is none.
    pub fn unconstrain(&mut self) -> bool {
        let body = self.unconstrained.take();
        let is_constrained = body.is_some();
        self.body = body.unwrap_or_else(|| std::mem::take(&mut self.body));
        is_constrained
    }

    /// Returns whether adding a grammar for this engine takes no time, because it is known or not needed.
    #[cfg(feature = "server")]
    pub(crate) fn knows_grammar(&self, engine: Engine) -> bool {
        let constraint = self.constraint.as_ref();
        constraint.is_none_or(|constraint| constraint.is_known(engine))
    }

    /// Adds to the counters.
    pub(crate) fn add_counts(&mut self, more: Counts) {
        self.exchange.reply.add_counts(more);
    }

    /// Returns what the request must keep alive: once it is dropped, the rest of the answer is not read.
    #[cfg(feature = "server")]
    pub(crate) fn client(&mut self) -> std::sync::Arc<()> {
        self.exchange.reply.client()
    }

    /// Returns whether the request was translated to plain text.
    #[cfg(feature = "server")]
    pub(crate) fn is_translated(&self) -> bool {
        self.exchange.reply.is_translated()
    }

    /// Takes the body of the next request to the model server. It is kept if a repair round may need it.
    #[cfg(feature = "server")]
    pub(crate) fn take_body(&mut self) -> Bytes {
        if self.exchange.reply.plans_repair() {
            self.body.clone()
        } else {
            std::mem::take(&mut self.body)
        }
    }

    /// Returns whether the client asked for an event stream. Otherwise the response is one JSON object.
    pub fn is_streamed(&self) -> bool {
        self.is_streamed
    }

    /// Returns the tools that could not be offered unchanged, each with the JSON Pointer into the client's request.
    pub fn changed_tools(&self) -> &[ChangedTool] {
        &self.changed
    }

    /// States whether the model server's answer is an event stream. Default: if the request asks for one.
    pub fn begin_answer(&mut self, is_stream: bool) {
        self.unconstrained = None;
        self.is_stream = is_stream;
    }

    /// Returns whether reading so many more bytes of the answer may take long, because it is long itself, or because its calls are
    /// validated by a schema, and compared with texts, that are.
    #[cfg(feature = "server")]
    pub(crate) fn takes_long(&mut self, bytes: usize) -> bool {
        self.length = self.length.saturating_add(bytes);
        self.length >= MAX_QUICK
    }

    /// Feeds the next bytes of the model server's answer. Returns whether to read on.
    pub fn feed(&mut self, bytes: &[u8]) -> Flow {
        if self.is_stream {
            return self.exchange.feed(bytes);
        }
        let rest = MAX_ANSWER - self.answer.len();
        self.is_too_long |= bytes.len() > rest;
        if self.is_too_long {
            self.answer = Vec::new();
            return Flow::Stop;
        }
        self.answer.extend_from_slice(bytes);
        Flow::Continue
    }

    /// States how long the request has taken, before its answer ends.
    #[cfg(feature = "server")]
    pub(crate) fn elapsed(&mut self, elapsed: Duration) {
        self.exchange.reply.encoder_mut().elapsed(elapsed);
    }

    /// Ends the model server's answer, with an error if there was one.
    pub fn end(&mut self, error: Option<GatewayError>) -> AskEnd {
        let answer = std::mem::take(&mut self.answer);
        let too_long = std::mem::take(&mut self.is_too_long).then(|| {
            let message = format!("the model server's answer exceeds {MAX_ANSWER} bytes");
            GatewayError::upstream(message)
        });
        let error = error.or(too_long);
        if self.is_stream || error.is_some() {
            let next = self.exchange.end(error);
            self.follow(next)
        } else {
            self.whole(&answer)
        }
    }

    /// Takes the model server's complete answer, which is not streamed, and ends it.
    pub(crate) fn whole(&mut self, answer: &[u8]) -> AskEnd {
        self.unconstrained = None;
        let next = match plaincall_wire::read::<ChatCompletion<'_>>(answer) {
            Ok(completion) => self.exchange.whole(completion),
            Err(error) => self.exchange.end(Some(GatewayError::unreadable(&error))),
        };
        self.follow(next)
    }

    fn follow(&mut self, next: Next) -> AskEnd {
        match next {
            Next::Done => AskEnd::Done,
            Next::Failed(error) => AskEnd::Refused(error),
            Next::Repair(round) => {
                match plaincall_wire::read::<ChatCompletionRequest<'_>>(&self.body) {
                    Ok(mut request) => {
                        round.add_to(&mut request);
                        self.body = plaincall_wire::write_bytes(&request).into();
                        AskEnd::Again
                    }
                    Err(error) => AskEnd::Refused(GatewayError::unreadable_request(&error)),
                }
            }
        }
    }

    /// Takes the bytes that can be sent to the client now.
    pub fn take(&mut self) -> Vec<u8> {
        self.exchange.take()
    }

    /// Returns whether output has been produced, so that the status can no longer change.
    pub fn has_begun(&self) -> bool {
        self.exchange.has_begun()
    }

    /// Returns whether the reply is complete, so that only its usage may follow.
    pub(crate) fn is_settled(&self) -> bool {
        self.exchange.reply.is_settled()
    }

    /// Returns what keeps the connection open, without content, once output of a stream has been produced: the API's own
    /// event, or a comment. Send it after a few seconds without output.
    pub fn keep_alive(&self) -> Option<Vec<u8>> {
        self.exchange.keep_alive()
    }

    /// Returns the counters so far.
    pub fn counts(&self) -> Counts {
        self.exchange.counts()
    }

    /// Frees what only a repair round would need, once there can be none. Returns whether texts of the request are
    /// still kept.
    #[cfg(feature = "server")]
    pub(crate) fn free(&mut self) -> bool {
        if self.exchange.reply.may_ask_again() {
            return true;
        }
        self.body = Bytes::new();
        self.exchange.reply.keeps_texts()
    }
}

/// Returns whether a request may have fields about tools.
fn has_tool_fields(body: &[u8]) -> bool {
    let mut fields = TOOL_FIELDS.iter();
    fields.any(|field| memmem::find(body, field.as_bytes()).is_some())
}

/// Checks the number of JSON values in a request body. Invalid JSON is detected later.
fn check_values(body: &[u8]) -> Result<(), GatewayError> {
    if values(body, MAX_VALUES) <= MAX_VALUES {
        return Ok(());
    }
    let message = format!("the request body has more than {MAX_VALUES} JSON values");
    Err(GatewayError::invalid_request(message, None))
}

/// Counts objects, lists and commas outside strings, up to one more than `most`: the bytes of `{},` become hundreds in memory.
fn values(body: &[u8], most: usize) -> usize {
    // Each value has at least one byte.
    if body.len() <= most {
        return 0;
    }
    let (mut values, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' | b',' if !is_in_string => {
                values += 1;
                if values > most {
                    break;
                }
            }
            _ => {}
        }
    }
    values
}
