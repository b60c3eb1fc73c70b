//! A hidden round of repair.

use plaincall_wire::openai::{ChatCompletionRequest, Message};

/// What is added to the request so that the model writes its calls again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepairRound {
    /// What the model wrote.
    pub reply: String,
    /// What is wrong with it.
    pub complaint: String,
}

impl RepairRound {
    pub(super) fn new(written: &str, complaint: String) -> Self {
        let written = written.trim_end();
        Self {
            // Servers refuse messages without a content.
            reply: if written.is_empty() {
                "(Nothing.)".to_owned()
            } else {
                written.to_owned()
            },
            complaint,
        }
    }

    /// Adds it to the request that was sent last.
    pub fn add_to(self, request: &mut ChatCompletionRequest<'_>) {
        request.messages.push(Message::new("assistant", self.reply));
        request.messages.push(Message::new("user", self.complaint));
    }
}
