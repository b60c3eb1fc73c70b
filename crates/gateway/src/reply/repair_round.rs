//! A hidden repair round.

use plaincall_wire::openai::{ChatCompletionRequest, Message};

use crate::reply::repair_reason::RepairReason;
use crate::reply::{Next, Reply};

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

impl Reply {
    /// Starts a repair round, or fails if the limit is reached.
    pub(super) fn repair(&mut self, reason: RepairReason) {
        self.counts.missing_calls += u64::from(reason.is_missing);
        let is_allowed = reason.can_be_asked && self.may_ask_again();
        self.settled = Some(match &self.round.written {
            Some(written) if is_allowed => Next::Repair(RepairRound::new(written, reason.text)),
            _ => Next::Failed(reason.error),
        });
    }

    /// Sends the text of a repair round without a call, except what has been sent already.
    pub(super) fn send_answer(&mut self) {
        let answer = std::mem::take(&mut self.round.answer);
        let sent = self.content.trim();
        if let Some(rest) = answer
            .trim_start()
            .strip_prefix(sent)
            .filter(|_| !sent.is_empty())
        {
            let rest = if self.content.ends_with('\n') {
                rest.trim_start_matches(['\r', '\n'])
            } else {
                rest
            };
            if !rest.trim().is_empty() {
                self.out.content(rest);
            }
        } else if !answer.is_empty() {
            // Markers never span lines.
            let needs_line = !self.content.is_empty() && !self.content.ends_with('\n');
            self.out.content(&if needs_line {
                ["\n", &answer].concat()
            } else {
                answer
            });
        }
    }
}
