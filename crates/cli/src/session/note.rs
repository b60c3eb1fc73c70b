//! The note at the beginning of a session's log, for commands that resume the session. It holds no secrets.

use plaincall::events::RunBegin;
use plaincall_config::settings::Model;
use plaincall_report::log::CHAT as PROGRAM;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The agent, the model and how it was taught. A conversation keeps its dialect.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Note {
    program: String,
    /// The named agent that the conversation began with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) agent: Option<String>,
    pub(crate) model: String,
    teaching: Model,
}

impl Note {
    /// Creates the note of a new conversation with this agent and model.
    pub(crate) fn new(agent: Option<&str>, model: &str, entry: &Model) -> Self {
        Self {
            program: PROGRAM.to_owned(),
            agent: agent.map(str::to_owned),
            model: model.to_owned(),
            teaching: entry.teaching(),
        }
    }

    /// Returns the note of a run that `ask` or `chat` started.
    pub(crate) fn of(begin: &RunBegin) -> Option<Self> {
        let note = begin.note.get("program")?;
        let parsed: Self = serde_json::from_value(note.clone()).ok()?;
        (parsed.program == PROGRAM).then_some(parsed)
    }

    pub(crate) fn to_json(&self) -> Value {
        let mut note = serde_json::to_value(self).unwrap_or_default();
        if let Some(teaching) = note.get_mut("teaching").and_then(Value::as_object_mut) {
            teaching.retain(|_, value| !value.is_null());
        }
        note
    }

    /// Returns the model with the teaching of the conversation.
    pub(crate) fn taught(&self, model: Model) -> Model {
        model.taught_as(&self.teaching)
    }
}
