//! The note of a session at the beginning of its log, for the command that resumes it. It holds no secrets.

use plaincall::{Dialect, events::RunBegin};
use plaincall_config::Model;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The name of `ask` and `chat` in their notes.
const PROGRAM: &str = "plaincall chat";

/// The model, and how it was taught. A conversation stays in the dialect in which it began.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    program: String,
    pub(crate) model: String,
    teaching: Model,
}

impl Note {
    /// The note of a conversation that begins with this model.
    pub(crate) fn new(model: &str, entry: &Model) -> Self {
        Self {
            program: PROGRAM.to_owned(),
            model: model.to_owned(),
            teaching: entry.teaching(),
        }
    }

    /// The note of a run, if it is one of these.
    pub(crate) fn of(begin: &RunBegin) -> Option<Self> {
        let note = begin.note.get("program")?;
        let noted: Self = serde_json::from_value(note.clone()).ok()?;
        (noted.program == PROGRAM).then_some(noted)
    }

    /// The dialect of a conversation, with its key, from its log.
    pub(crate) fn dialect(begin: &RunBegin) -> Option<Dialect> {
        let dialect = Self::of(begin)?.teaching.conversation();
        Some(match begin.note.get("key").and_then(Value::as_str) {
            Some(key) => dialect.keyed(key),
            None => dialect,
        })
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut note = serde_json::to_value(self).unwrap_or_default();
        if let Some(teaching) = note.get_mut("teaching").and_then(Value::as_object_mut) {
            teaching.retain(|_, value| !value.is_null());
        }
        note
    }

    /// A model, taught as in the conversation.
    pub(crate) fn taught(&self, model: Model) -> Model {
        model.taught_as(&self.teaching)
    }
}
