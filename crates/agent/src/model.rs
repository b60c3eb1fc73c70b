//! Models: messages in, a streamed reply out.

#[cfg(feature = "http")]
#[macro_use]
mod client;

#[cfg(feature = "http")]
mod answer;
#[cfg(feature = "http")]
mod anthropic;
#[cfg(feature = "http")]
mod configured;
#[cfg(feature = "http")]
mod constrained;
#[cfg(any(feature = "http", feature = "mcp"))]
mod key;
mod native;
#[cfg(feature = "http")]
mod openai;
mod replay;
#[cfg(feature = "http")]
mod response_reader;
mod retry;
mod scripted;
#[cfg(feature = "http")]
mod server_error;

#[cfg(feature = "http")]
pub use anthropic::Anthropic;
#[cfg(feature = "http")]
pub use configured::ConfiguredClient;
#[cfg(any(feature = "http", feature = "mcp"))]
pub use key::Key;
pub use native::{NativeCall, NativeMessage, NativeRequest, NativeTool};
#[cfg(feature = "http")]
pub use openai::OpenAi;
pub use plaincall::events::Usage;
pub use plaincall_grammar::Constrain;
pub use plaincall_wire::{Json, ReplayError};
pub use replay::Replay;
pub use retry::{Retries, Retrying};
pub use scripted::{Scripted, ScriptedReply};

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use plaincall::Stop;
use plaincall_grammar::Grammar;
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Sender;

use crate::flow::Flow;

/// A model. `OpenAi` and `Anthropic` are clients for servers; `docs/agents-in-rust.md` shows how to implement your own.
pub trait Model: Send + Sync + 'static {
    /// Returns its name, for display and logs.
    fn name(&self) -> &str;

    /// Requests a reply. Nothing is sent until the reply is polled; dropping it cancels the request.
    fn reply(&self, request: ModelRequest) -> Reply;

    /// Returns whether it supports [`ModelRequest::native`]. Default: no.
    fn supports_native_calls(&self) -> bool {
        false
    }

    /// Returns whether its replies are constrained with [`ModelRequest::grammar`]. Default: never.
    fn constrains(&self) -> Constrain {
        Constrain::Never
    }
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        (**self).reply(request)
    }

    fn supports_native_calls(&self) -> bool {
        (**self).supports_native_calls()
    }

    fn constrains(&self) -> Constrain {
        (**self).constrains()
    }
}

/// A request to a model.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The messages. Cloning a request does not copy them.
    pub messages: Arc<[Message]>,
    /// The most tokens of the reply. Default: the limit of the model.
    pub max_tokens: Option<u32>,
    /// The seed of the sampling. Default: the server's choice.
    pub seed: Option<u64>,
    /// A conversation that uses the server's own tool calls, instead of `messages`. Only for a model that
    /// [supports](Model::supports_native_calls) it.
    pub native: Option<Arc<NativeRequest>>,
    /// The grammar of the reply. A model that [constrains](Model::constrains) replies uses it; others ignore it.
    pub grammar: Option<Arc<Grammar>>,
}

impl ModelRequest {
    /// Creates a request.
    pub fn new(messages: impl Into<Arc<[Message]>>) -> Self {
        Self {
            messages: messages.into(),
            max_tokens: None,
            seed: None,
            native: None,
            grammar: None,
        }
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// The role of the author.
    pub role: Role,
    /// The text, as the model reads it.
    pub text: Arc<str>,
}

impl Message {
    /// Creates a message.
    pub fn new(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self {
            role,
            text: text.into(),
        }
    }
}

/// The role of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The system prompt.
    System,
    /// The user, or results.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Returns its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A part of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// Text, which may contain calls.
    Text(String),
    /// Reasoning, if the server reports it separately. Nothing in it is a call.
    Reasoning(String),
    /// The usage of the reply so far. A later one replaces it.
    Usage(Usage),
    /// A call of a [native](ModelRequest::native) request, complete. Calls come at the end of a reply.
    Call(NativeCall),
    /// The request failed and will be retried ([`Retrying`]).
    Retry(RetryEvent),
}

/// A retry of a request that failed before the reply began.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RetryEvent {
    /// The number of this retry, from 1.
    pub attempt: u32,
    /// The most retries that are allowed.
    pub max_retries: u32,
    /// The delay before the retry.
    pub delay: Duration,
    /// The error of the failed request.
    pub error: ModelError,
}

/// How a reply ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finish {
    /// The kind of end, which decides about open calls.
    pub stop: Stop,
    /// The reason that the server gave.
    pub reason: Option<String>,
}

impl Finish {
    /// A natural end: the model finished its reply.
    pub const fn stop() -> Self {
        Self::new(Stop::Natural)
    }

    /// Creates an end of this kind.
    pub const fn new(stop: Stop) -> Self {
        Self { stop, reason: None }
    }

    /// Creates an end from the reason of a server. Only known reasons are natural ends.
    pub fn by_reason(reason: &str) -> Self {
        Self::new(Stop::from_finish_reason(reason)).reason(reason)
    }

    /// Sets the reason that the server gave.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// A streamed reply.
pub struct Reply(Flow<'static, Piece, Result<Finish, ModelError>>);

/// The next item of a reply.
#[derive(Debug)]
pub enum ReplyNext {
    /// A part of the reply.
    Piece(Piece),
    /// The end of the reply.
    Finish(Finish),
}

impl Reply {
    /// Creates a reply that a function writes. It runs while the reply is polled, at most a few parts ahead.
    pub fn new<F>(write: impl FnOnce(ReplyWriter) -> F) -> Self
    where
        F: Future<Output = Result<Finish, ModelError>> + Send + 'static,
    {
        Self(Flow::new(|pieces| write(ReplyWriter(pieces))))
    }

    /// Returns the next item; `None` after the end. Cancel safe.
    ///
    /// # Errors
    /// Returns an error if the reply failed. It is the last item.
    pub async fn next(&mut self) -> Option<Result<ReplyNext, ModelError>> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }
}

impl Stream for Reply {
    type Item = Result<ReplyNext, ModelError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = ready!(Pin::new(&mut self.0).poll_next(context));
        Poll::Ready(match piece {
            Some(piece) => Some(Ok(ReplyNext::Piece(piece))),
            None => self.0.end.take().map(|end| end.map(ReplyNext::Finish)),
        })
    }
}

/// Writes a [`Reply`]. Its methods wait while the reader is behind.
#[derive(Clone, Debug)]
pub struct ReplyWriter(Sender<Piece>);

impl ReplyWriter {
    /// Writes text.
    pub async fn text(&self, text: impl Into<String>) {
        self.piece(Piece::Text(text.into())).await;
    }

    /// Writes reasoning.
    pub async fn reasoning(&self, text: impl Into<String>) {
        self.piece(Piece::Reasoning(text.into())).await;
    }

    /// Writes the usage so far.
    pub async fn usage(&self, usage: Usage) {
        self.piece(Piece::Usage(usage)).await;
    }

    /// Writes a part.
    pub async fn piece(&self, piece: Piece) {
        // It fails only if the reply was dropped, and then this is not polled again.
        let _ = self.0.send(piece).await;
    }
}

/// An error of a model, before or during a reply.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{message}")]
pub struct ModelError {
    /// The kind of error.
    pub kind: ModelErrorKind,
    /// The message for people. It contains no key.
    pub message: String,
    /// The delay that the server asks for.
    pub retry_after: Option<Duration>,
}

/// The kind of a [`ModelError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// The connection failed.
    Connect,
    /// An address of this machine refused the connection: the server is not running. This is retried once.
    NotRunning,
    /// The server is busy or failed: the same request may succeed later.
    Busy,
    /// The server rejected the request, for example because of its key or model.
    Refused,
    /// The conversation exceeds the context window.
    TooLong,
    /// A timeout.
    Timeout,
    /// The reply failed midway, or is invalid.
    Broken,
}

impl ModelError {
    /// Creates an error with a message for people.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The error of a reply without an end.
    pub(crate) fn endless() -> Self {
        Self::new(ModelErrorKind::Broken, "the reply has no end")
    }

    /// Sets the delay that the server asks for.
    pub const fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }
}
