//! Recorded replies in the place of a model.

use std::sync::Arc;

use plaincall_wire::{RecordedReply, ReplayError, read_replies};

use super::scripted::ScriptedReply;
use super::{Model, ModelError, ModelErrorKind, ModelRequest, Reply, Role};

/// Recorded replies that are given in the place of a model's. They need no server and no key.
///
/// A request with N replies of the model gets reply N of the recorded ones, or the last. `plaincall serve` reads the same
/// files.
#[derive(Clone, Debug)]
pub struct Replay(Arc<[RecordedReply]>);

impl Replay {
    /// Reads replies, one JSON document a line: a text, or an object with `content` and perhaps `finish_reason`.
    ///
    /// # Errors
    /// Says which line is neither, or that there is none.
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
            let error = ModelError::new(ModelErrorKind::Refused, "there is no recorded reply");
            return Reply::new(|_| async { Err(error) });
        };
        let reply = ScriptedReply::text(&recorded.content).reason(&recorded.finish_reason);
        Reply::new(|out| async move { reply.play(&out).await })
    }
}
