//! What the loop asks: a model takes messages and writes a reply.

#[cfg(feature = "http")]
#[macro_use]
mod client;

#[cfg(feature = "http")]
mod answer;
#[cfg(feature = "http")]
mod anthropic;
#[cfg(any(feature = "http", feature = "mcp"))]
mod key;
#[cfg(feature = "http")]
mod openai;
#[cfg(feature = "http")]
mod reading;
mod replay;
mod retry;
mod scripted;
#[cfg(feature = "http")]
mod server_error;

#[cfg(feature = "http")]
pub use anthropic::Anthropic;
#[cfg(any(feature = "http", feature = "mcp"))]
pub use key::Key;
#[cfg(feature = "http")]
pub use openai::OpenAi;
pub use plaincall_wire::{Json, ReplayError};
pub use replay::Replay;
pub use retry::{Retries, Retrying};
pub use scripted::{Scripted, ScriptedReply};

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use plaincall::Stop;
use plaincall_wire::openai::{is_cut_by_length, is_natural_end};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::Sender;

use crate::flow::Flow;

/// A model: messages in; text, reasoning, usage and the reason of the end out.
///
/// The clients `OpenAi` and `Anthropic` ask servers. A model of one's own is a function of a request
/// (`docs/agents-in-rust.md`).
pub trait Model: Send + Sync + 'static {
    /// Its name, for people and records.
    fn name(&self) -> &str;

    /// Asks for a reply. Nothing is sent before the reply is read; dropping it takes the request back.
    fn reply(&self, request: ModelRequest) -> Reply;
}

impl<M: Model + ?Sized> Model for Arc<M> {
    fn name(&self) -> &str {
        (**self).name()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        (**self).reply(request)
    }
}

/// What a model is asked.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ModelRequest {
    /// The conversation so far. Cloning a request does not copy it.
    pub messages: Arc<[Message]>,
    /// How many tokens the reply may have at most; the model's own limit if `None`.
    pub max_tokens: Option<u32>,
}

impl ModelRequest {
    /// A request with these messages.
    pub fn new(messages: impl Into<Arc<[Message]>>) -> Self {
        Self {
            messages: messages.into(),
            max_tokens: None,
        }
    }
}

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Message {
    /// Who says it.
    pub role: Role,
    /// What is said, as the model reads it.
    pub text: Arc<str>,
}

impl Message {
    /// A message.
    pub fn new(role: Role, text: impl Into<Arc<str>>) -> Self {
        Self {
            role,
            text: text.into(),
        }
    }
}

/// Who says a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// The program: what holds for the whole conversation.
    System,
    /// The user, or the program with results.
    User,
    /// The model.
    Assistant,
}

impl Role {
    /// Its name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Assistant => "assistant",
        }
    }
}

/// A piece of a reply.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Piece {
    /// Text of the answer, which may hold calls.
    Text(String),
    /// Text of the model's reasoning, if its server tells it apart. Nothing in it is a call.
    Reasoning(String),
    /// What the reply has cost so far. A later one replaces it.
    Usage(Usage),
    /// Nothing has come, and after a pause the model is asked again: [`Retrying`] tells so.
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
    /// What that means for a call that nothing closed.
    pub stop: Stop,
    /// The server's own word for it.
    pub reason: Option<String>,
}

impl Finish {
    /// The model has said all it wanted to say.
    pub const fn stop() -> Self {
        Self::new(Stop::Natural)
    }

    /// An end of this kind.
    pub const fn new(stop: Stop) -> Self {
        Self { stop, reason: None }
    }

    /// An end for the reason that a server gives. Servers have many words for what went wrong, so only words that are
    /// known to mean so are natural ends.
    pub fn by_reason(reason: &str) -> Self {
        let stop = if is_natural_end(reason) {
            Stop::Natural
        } else if is_cut_by_length(reason) {
            Stop::Length
        } else {
            Stop::Broken
        };
        Self::new(stop).reason(reason)
    }

    /// Says which word the server has for it.
    pub fn reason(mut self, reason: impl Into<String>) -> Self {
        self.reason = Some(reason.into());
        self
    }
}

/// What a reply, or several, cost, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// Tokens that the model read.
    pub input: u64,
    /// Of these, tokens that its server had kept from earlier.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// Tokens that it wrote, reasoning too.
    pub output: u64,
}

/// Whether a count need not be written.
pub(crate) fn is_zero<N: Default + PartialEq>(count: &N) -> bool {
    *count == N::default()
}

impl Usage {
    /// Tokens read and written.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            cached: 0,
            output,
        }
    }

    /// All of them.
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds what another reply cost.
    pub const fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}

/// A reply that is being written.
pub struct Reply(Flow<'static, Piece, Result<Finish, ModelError>>);

/// What a reply has next.
#[derive(Debug)]
pub enum ReplyNext {
    /// A piece of it.
    Piece(Piece),
    /// It is over.
    Finish(Finish),
}

impl Reply {
    /// A reply that a function writes. It runs while the reply is read, and no further ahead than a few pieces.
    pub fn new<F>(write: impl FnOnce(ReplyWriter) -> F) -> Self
    where
        F: Future<Output = Result<Finish, ModelError>> + Send + 'static,
    {
        Self(Flow::new(|pieces| write(ReplyWriter(pieces))))
    }

    /// What comes next; `None` when the end was told. Dropping the future loses nothing.
    ///
    /// # Errors
    /// If the reply broke off. Nothing comes after that.
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

/// Writes a [`Reply`]. Its functions wait while the reader has not kept up; if the reader has gone, so has the reply.
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

    /// Says what the reply has cost so far.
    pub async fn usage(&self, usage: Usage) {
        self.piece(Piece::Usage(usage)).await;
    }

    /// Writes a piece.
    pub async fn piece(&self, piece: Piece) {
        // It fails only if the reply was dropped, and then this function is not polled again.
        let _ = self.0.send(piece).await;
    }
}

/// Why a model gave no reply, or only a part of one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ModelError {
    /// What kind of trouble it is.
    pub kind: ModelErrorKind,
    /// What happened and what to do about it, for people. It holds no key.
    pub message: String,
    /// How long the server wants to be left alone.
    pub retry_after: Option<Duration>,
}

/// The kinds of trouble with a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ModelErrorKind {
    /// No connection came about.
    Connect,
    /// Nothing listens at an address of this machine: the server was not started. It is asked once more, since it may just
    /// be starting.
    NotRunning,
    /// The server is busy, or has failed by itself: the same request may succeed later.
    Busy,
    /// The server refuses the request: the key, the name of the model, what is asked.
    Refused,
    /// The conversation is longer than the model can read.
    TooLong,
    /// Nothing came for too long.
    Timeout,
    /// The reply broke off, or could not be read.
    Broken,
}

impl ModelError {
    /// An error with a message for people.
    pub fn new(kind: ModelErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            retry_after: None,
        }
    }

    /// The error of a reply that ends without saying so, which none does.
    pub(crate) fn endless() -> Self {
        Self::new(ModelErrorKind::Broken, "the reply has no end")
    }

    /// Says how long the server wants to be left alone.
    pub const fn retry_after(mut self, pause: Duration) -> Self {
        self.retry_after = Some(pause);
        self
    }
}

impl fmt::Display for ModelError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for ModelError {}
