//! Replays recorded replies.

use std::sync::Arc;

use plaincall_wire::{RecordedReply, ReplayError, read_replies};

use super::scripted::ScriptedReply;
use super::{Model, ModelError, ModelErrorKind, ModelRequest, Reply, Role};

/// A model that replays recorded replies, without a server.
///
/// A request with N earlier replies gets the recorded reply N, or the last one. `plaincall serve` reads the same files.
#[derive(Clone, Debug)]
pub struct Replay(Arc<[RecordedReply]>);

impl Replay {
    /// Reads one JSON document per line: a string, or an object with `content` and optionally `finish_reason`.
    ///
    /// # Errors
    /// Returns an error for an invalid line, or if there are no replies.
    pub fn read(text: &str) -> Result<Self, ReplayError> {
        Ok(Self(read_replies(text)?.into()))
    }
}

impl Model for Replay {
    fn name(&self) -> &'static str {
        "replay"
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let turns = request.messages.iter();
        let turn = turns
            .filter(|message| message.role == Role::Assistant)
            .count();
        let Some(recorded) = self.0.get(turn).or(self.0.last()) else {
            let error = ModelError::new(ModelErrorKind::Refused, "there are no recorded replies");
            return Reply::new(|_| async { Err(error) });
        };
        let reply = ScriptedReply::new()
            .text(&recorded.content)
            .reason(&recorded.finish_reason);
        Reply::new(|out| async move { reply.play(&out).await })
    }
}
