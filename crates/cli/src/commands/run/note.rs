//! The note in the first event of a log, for commands that resume the run. It holds no secrets and no environment.

use std::path::{Path, PathBuf};

use plaincall::events::Source;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::DialectOptions;
use crate::platform::path_of;

/// The program name in notes of `run`.
pub(crate) use plaincall_report::log::RUN as PROGRAM;

/// The files and options of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    pub(crate) program: String,
    /// The file of the reply. None for a pipe.
    pub(crate) reply: Option<Source>,
    /// The tools file. None for standard input.
    pub(crate) tools: Option<Source>,
    /// The CRC-32 of the tools file.
    pub(crate) tools_crc32: u32,
    /// The dialect options.
    pub(crate) syntax: DialectOptions,
    /// The value of `--complete`.
    pub(crate) complete: bool,
    /// The value of `--yes`.
    pub(crate) yes: bool,
    /// Whether the dialect has `no-reasoning`.
    pub(crate) no_reasoning: bool,
    /// The files of `--untrusted`.
    pub(crate) untrusted: Vec<Source>,
}

impl Note {
    pub(crate) fn to_json(&self) -> Value {
        // All fields can be serialized.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Parses a note from a log.
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
pub(crate) fn absolute(path: &Path) -> Source {
    let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    absolute.as_os_str().as_encoded_bytes().into()
}

/// Returns the path in a note.
pub(crate) fn path(source: &Source) -> PathBuf {
    path_of(source.as_bytes())
}
