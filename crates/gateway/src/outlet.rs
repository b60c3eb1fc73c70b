//! Where a reply goes: a stream, or a whole answer.

pub(crate) mod streamed;
pub(crate) mod whole;

use plaincall_wire::openai::{ChatCompletionChunk, ReasoningField, Usage};

/// Takes a reply piece by piece, in the order in which the client gets it.
pub trait Outlet {
    /// The model's server has begun to answer.
    fn begin(&mut self, _chunk: &ChatCompletionChunk<'_>) {}

    /// A chunk has come: its fields without a name here go out with the next piece.
    fn carry(&mut self, _chunk: &ChatCompletionChunk<'_>) {}

    /// A piece of the text.
    fn content(&mut self, text: &str);

    /// A piece of the reasoning.
    fn reasoning(&mut self, name: ReasoningField, text: &str);

    /// A piece of what the model says in place of an answer that it refuses.
    fn refusal(&mut self, text: &str);

    /// A call begins: its number from 0, its id and the name of the tool.
    fn call(&mut self, index: u64, id: &str, name: &str);

    /// A piece of the JSON text of a call's arguments.
    fn arguments(&mut self, index: u64, piece: &str);

    /// The reply has ended, and why.
    fn finish(&mut self, reason: &str);

    /// What the reply cost, rounds of repair included.
    fn usage(&mut self, usage: &Usage<'_>);
}
