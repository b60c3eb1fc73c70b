//! A record of attempts: a line of JSON for the settings, then one for each finished attempt. It allows an interrupted
//! comparison to continue.

use serde::{Deserialize, Serialize};

use crate::attempt::Attempt;
use crate::shared_result::Settings;
use crate::task::task_version;

/// The version of the format.
const FORMAT: u32 = 1;

/// The first line of a record.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Record {
    format: u32,
    tasks: String,
    /// The model, as the server names it.
    pub model: String,
    /// The settings.
    pub settings: Settings,
}

/// Why a record cannot be continued.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct RecordError(String);

impl Record {
    /// Creates the first line of a record.
    pub fn new(model: &str, settings: Settings) -> Self {
        Self {
            format: FORMAT,
            tasks: task_version(),
            model: model.to_owned(),
            settings,
        }
    }

    /// Returns the line, with its line end.
    pub fn line(&self) -> String {
        line(self)
    }

    /// Returns the line of an attempt, with its line end.
    pub fn attempt_line(attempt: &Attempt) -> String {
        line(attempt)
    }

    /// Reads the attempts of a record that has these settings. Also returns the length of its complete lines: an incomplete
    /// last line comes from an interruption and can be removed.
    ///
    /// # Errors
    /// Returns an error if the text is not a probe record, or the record has another model, other settings or other tasks.
    pub fn attempts(&self, text: &str) -> Result<(Vec<Attempt>, usize), RecordError> {
        let complete = text.rfind('\n').map_or(0, |end| end + 1);
        let mut lines = text.get(..complete).unwrap_or_default().lines();
        let Some(first) = lines.next() else {
            return Ok((Vec::new(), 0));
        };
        let first: Self = serde_json::from_str(first)
            .map_err(|error| RecordError(format!("line 1: not a probe record: {error}")))?;
        let other = if first.format != self.format || first.tasks != self.tasks {
            Some("another version of the tasks")
        } else if first.model != self.model {
            Some("another model")
        } else if first.settings != self.settings {
            Some("other settings")
        } else {
            None
        };
        if let Some(other) = other {
            return Err(RecordError(format!(
                "it was recorded with {other}; use another file, or delete this one"
            )));
        }
        let mut attempts = Vec::new();
        for (index, line) in lines.enumerate() {
            let attempt = serde_json::from_str(line)
                .map_err(|error| RecordError(format!("line {}: {error}", index + 2)))?;
            attempts.push(attempt);
        }
        Ok((attempts, complete))
    }
}

fn line(value: &impl Serialize) -> String {
    serde_json::to_string(value).unwrap_or_default() + "\n"
}
