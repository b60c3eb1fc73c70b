//! Where a reply is written: to a stream, or to a complete response.

pub(crate) mod complete;
pub(crate) mod streamed;

use plaincall_wire::openai::{ChatCompletionChunk, ReasoningField, Usage};

/// Receives the parts of a reply in the order in which the client gets them.
pub trait ResponseSink {
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

    /// Ends the reply with a finish reason.
    fn finish(&mut self, reason: &str);

    /// Reports the token usage, including repair rounds.
    fn usage(&mut self, usage: &Usage<'_>);
}
