//! The note in the first event of a log, for the command that resumes the run.
//!
//! It holds no secrets and nothing of the environment.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use plaincall::events::Source;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::DialectOptions;

/// The name of the command in its notes.
pub(crate) const PROGRAM: &str = "plaincall run";

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) program: String,
    /// The file of the reply; `None` if it came through a pipe.
    pub(crate) reply: Option<Source>,
    /// The tools file; `None` if it came from the standard input.
    pub(crate) tools: Option<Source>,
    /// The CRC-32 of its text.
    pub(crate) tools_crc32: u32,
    /// How the reply is read.
    pub(crate) syntax: DialectOptions,
    /// Whether the text was declared complete.
    pub(crate) complete: bool,
    /// Whether tools may change something without a question.
    pub(crate) yes: bool,
    /// Whether `<think>` was read as text.
    pub(crate) no_reasoning: bool,
    /// The files with untrusted text that the model was given.
    pub(crate) untrusted: Vec<Source>,
}

impl Note {
    /// Returns the note as JSON.
    pub(crate) fn to_json(&self) -> Value {
        // All of its values can be serialized.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads one from a log.
    pub(crate) fn from_json(note: &Value) -> Result<Self, String> {
        let program = note.get("program").and_then(Value::as_str);
        if program != Some(PROGRAM) {
            return Err(
                "was not written by `plaincall run`; resume it with the program that wrote it"
                    .to_owned(),
            );
        }
        serde_json::from_value(note.clone()).map_err(|error| {
            format!(
                "was written by another version of Plaincall ({error}); resume it with that version"
            )
        })
    }
}

/// Returns the absolute path of a file.
pub(crate) fn noted(path: &Path) -> Source {
    let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    whole.as_os_str().as_bytes().into()
}

pub(crate) fn path(noted: &Source) -> PathBuf {
    OsStr::from_bytes(noted.as_bytes()).into()
}
