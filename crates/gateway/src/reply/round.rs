//! A hidden repair round.

use plaincall_wire::openai::{ChatCompletionRequest, Message};

/// The messages that ask the model to write its calls again.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RepairRound {
    /// The model's reply.
    pub reply: String,
    /// The repair message.
    pub message: String,
}

impl RepairRound {
    pub(super) fn new(written: &str, message: String) -> Self {
        let written = written.trim_end();
        Self {
            // Servers reject messages without content.
            reply: if written.is_empty() {
                "(Nothing.)".to_owned()
            } else {
                written.to_owned()
            },
            message,
        }
    }

    /// Appends the messages to the previous request.
    pub fn add_to(self, request: &mut ChatCompletionRequest<'_>) {
        request.messages.push(Message::new("assistant", self.reply));
        request.messages.push(Message::new("user", self.message));
    }
}
