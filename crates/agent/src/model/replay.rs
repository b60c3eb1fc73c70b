//! Recorded replies in the place of a model.

use std::sync::Arc;

use plaincall_wire::{RecordedReply, ReplayError, read_replies};

use super::scripted::ScriptedReply;
use super::{Model, ModelError, ModelErrorKind, ModelRequest, Reply, Role};

/// Recorded replies that are given in the place of a model's. They need no server and no key.
///
/// A request gets the reply whose number is that of the model's turns in it: the first request of a conversation the
/// first reply, the next the second; after the last it stays with that. So nothing need be kept, and the same question
/// always gets the same answer. `plaincall serve` reads the same files.
///
/// ```
/// use plaincall_agent::model::{Model, Replay};
///
/// let replay = Replay::read("\"Hello.\"\n{\"content\": \"Good\", \"finish_reason\": \"length\"}\n")?;
/// assert_eq!(replay.name(), "replay");
/// assert!(Replay::read("Hello.").unwrap_err().to_string().starts_with("line 1: "));
/// # Ok::<(), plaincall_agent::model::ReplayError>(())
/// ```
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
            let message = "there is no recorded reply";
            return Reply::failed(ModelError::new(ModelErrorKind::Refused, message));
        };
        let reply = ScriptedReply::text(&recorded.content).reason(&recorded.finish_reason);
        Reply::new(|out| async move { reply.play(&out).await })
    }
}
