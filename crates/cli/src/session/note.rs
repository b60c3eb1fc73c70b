//! What the log of a session says at its beginning for the command that goes on with it. It holds no secrets.

use plaincall::{Dialect, RunBegin};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::config::check::dialect;
use crate::config::contents::{ModelEntry, Reasoning, Syntax};

/// What the commands call themselves in their notes.
const PROGRAM: &str = "plaincall talk";

/// What is noted: the model, and how it was taught. A conversation stays in the dialect in which it began.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Note {
    program: String,
    /// What the model was called.
    pub(crate) model: String,
    syntax: Syntax,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end_prefix: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    arg_prefix: Option<String>,
    /// The markers around reasoning.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reasoning: Option<(String, String)>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    in_reasoning: bool,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    keyed: bool,
}

impl Note {
    /// The note of a conversation that begins with this model.
    pub(crate) fn new(model: &str, entry: &ModelEntry) -> Self {
        Self {
            program: PROGRAM.to_owned(),
            model: model.to_owned(),
            syntax: entry.syntax,
            start_prefix: entry.start_prefix.clone(),
            end_prefix: entry.end_prefix.clone(),
            arg_prefix: entry.arg_prefix.clone(),
            reasoning: match &entry.reasoning {
                Reasoning::Between(open, close) => Some((open.clone(), close.clone())),
                Reasoning::None => None,
            },
            in_reasoning: entry.in_reasoning,
            keyed: entry.keyed,
        }
    }

    /// The note of a run, if it is one of these.
    pub(crate) fn of(begin: &RunBegin) -> Option<Self> {
        let note = begin.note.get("program")?;
        let noted: Self = serde_json::from_value(note.clone()).ok()?;
        (noted.program == PROGRAM).then_some(noted)
    }

    /// The dialect of a conversation, with its key, as its log says it.
    pub(crate) fn dialect(begin: &RunBegin) -> Option<Dialect> {
        let mut entry = ModelEntry::default();
        Self::of(begin)?.teach(&mut entry);
        let dialect = dialect(&entry);
        Some(match begin.note.get("key").and_then(Value::as_str) {
            Some(key) => dialect.keyed(key),
            None => dialect,
        })
    }

    /// As it stands in the log.
    pub(crate) fn to_json(&self) -> Value {
        // It is made of texts and truths, which JSON can always say.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Makes the model be taught as the conversation was.
    pub(crate) fn teach(&self, entry: &mut ModelEntry) {
        entry.syntax = self.syntax;
        entry.start_prefix.clone_from(&self.start_prefix);
        entry.end_prefix.clone_from(&self.end_prefix);
        entry.arg_prefix.clone_from(&self.arg_prefix);
        entry.reasoning = match &self.reasoning {
            Some((open, close)) => Reasoning::Between(open.clone(), close.clone()),
            None => Reasoning::None,
        };
        entry.in_reasoning = self.in_reasoning;
        entry.keyed = self.keyed;
    }
}
