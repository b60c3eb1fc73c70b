//! Where a reply is written, in each API: to a stream, or to a complete response.

use std::fmt;
use std::time::Duration;

use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ReasoningField, ToolCall, Usage,
};

use crate::error::GatewayError;

/// The longest id or name of the model server that is repeated, in bytes.
pub(crate) const MAX_NAME: usize = 1024;

/// Returns the model server's name for its model, if it has one.
pub(crate) fn model_name(name: Option<&str>) -> Option<&str> {
    name.filter(|name| !name.is_empty() && name.len() <= MAX_NAME)
}

/// Returns a comment, which keeps a connection open.
pub(crate) fn keep_alive_comment() -> Vec<u8> {
    b": keep-alive\n\n".to_vec()
}

/// Writes a reply in the format of an API: to a stream, or to a complete response. Receives the parts of the reply in the order in
/// which the client gets them.
pub trait Encoder: fmt::Debug {
    /// The first chunk of the model server has arrived.
    fn begin(&mut self, _chunk: &ChatCompletionChunk<'_>) {}

    /// A chunk has arrived. Its unknown fields are sent with the next part.
    fn carry(&mut self, _chunk: &ChatCompletionChunk<'_>) {}

    /// Appends a piece of the text.
    fn content(&mut self, text: &str);

    /// Appends a piece of the reasoning.
    fn reasoning(&mut self, name: ReasoningField, text: &str);

    /// Appends a piece of the text in which the model declines to answer (`refusal` in the API).
    fn refusal(&mut self, text: &str);

    /// Begins a call: its index from 0, its id and the name of the tool.
    fn call(&mut self, index: u64, id: &str, name: &str);

    /// Appends a piece of the JSON text of a call's arguments.
    fn arguments(&mut self, index: u64, piece: &str);

    /// Appends a piece of a call that the model server made: the whole, or one delta. The first piece has an id and a name.
    fn native_call(&mut self, index: u64, is_first: bool, piece: &ToolCall<'_>) {
        if is_first {
            self.call(index, piece.id.as_deref().unwrap_or_default(), piece.name());
        }
        if !piece.arguments().is_empty() {
            self.arguments(index, piece.arguments());
        }
    }

    /// Returns whether a call may continue after another one has begun.
    fn can_interleave(&self) -> bool {
        false
    }

    /// Returns whether agents that use this API continue a truncated reply. Those of other APIs take its text for the answer.
    fn is_continued(&self) -> bool {
        false
    }

    /// Ends the reply with a finish reason.
    fn finish(&mut self, reason: &str);

    /// Reports the token usage, including repair rounds.
    fn usage(&mut self, usage: &Usage<'_>);

    /// Returns whether output has been produced, so that the status can no longer change.
    fn has_begun(&self) -> bool;

    /// Takes the bytes that can be sent now.
    fn take(&mut self) -> Vec<u8>;

    /// Takes the model server's complete answer, after all parts of the reply and before [`done`](Self::done).
    fn answer(&mut self, _completion: ChatCompletion<'_>) {}

    /// States how long the request has taken.
    fn elapsed(&mut self, _elapsed: Duration) {}

    /// Ends the reply.
    fn done(&mut self);

    /// Ends the reply with an error.
    fn error(&mut self, error: &GatewayError);

    /// Returns what keeps the connection open, without content. `is_holding` is whether a call or a repair round keeps the
    /// client waiting.
    fn keep_alive(&self, _is_holding: bool) -> Vec<u8> {
        keep_alive_comment()
    }
}
