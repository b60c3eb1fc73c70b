//! What the log of a run says at its beginning for the command that takes it up again: the note of its first event.
//!
//! It holds no secrets and nothing of the environment.

use std::ffi::OsString;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::path::{Path, PathBuf};

use clap::Parser;
use plaincall::Source;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::options::DialectOptions;
use crate::options::MarkerPlaces;
use crate::options::SyntaxChoice;

/// What the command calls itself in its notes.
const PROGRAM: &str = "plaincall run";

/// The note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Note {
    program: String,
    /// The file of the reply; `None` if it came through a pipe.
    pub(crate) reply: Option<NotedPath>,
    /// The tools file; `None` if it came from the standard input.
    pub(crate) tools: Option<NotedPath>,
    /// The CRC-32 of its text, in hexadecimal.
    tools_crc32: String,
    /// The options that say how the reply is read, as they are written on a command line.
    syntax: Vec<String>,
    /// Whether the text was said to be whole.
    pub(crate) complete: bool,
    /// Whether tools may change something without a question.
    pub(crate) yes: bool,
    /// Whether `<think>` was read as text.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) no_reasoning: bool,
    /// The files that the model was given.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) heard: Vec<NotedPath>,
}

/// A path. In JSON it is a text, or where it is no UTF-8 its bytes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum NotedPath {
    Text(String),
    Bytes(Source),
}

impl NotedPath {
    /// The whole path of a file, wherever the command will be started next time.
    pub(crate) fn of(path: &Path) -> Self {
        let whole = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        match whole.into_os_string().into_string() {
            Ok(text) => Self::Text(text),
            Err(other) => Self::Bytes(other.as_bytes().into()),
        }
    }

    pub(crate) fn to_path(&self) -> PathBuf {
        match self {
            Self::Text(text) => text.into(),
            Self::Bytes(bytes) => OsString::from_vec(bytes.as_bytes().to_vec()).into(),
        }
    }
}

/// What is noted of a run's options.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted<'o> {
    pub(crate) reply: Option<&'o Path>,
    pub(crate) tools: Option<&'o Path>,
    pub(crate) tools_crc32: u32,
    pub(crate) syntax: &'o DialectOptions,
    pub(crate) complete: bool,
    pub(crate) yes: bool,
    pub(crate) no_reasoning: bool,
    pub(crate) heard: &'o [PathBuf],
}

impl Note {
    pub(crate) fn new(noted: Noted<'_>) -> Self {
        Self {
            program: PROGRAM.to_owned(),
            reply: noted.reply.map(NotedPath::of),
            tools: noted.tools.map(NotedPath::of),
            tools_crc32: checksum(noted.tools_crc32),
            syntax: written(noted.syntax),
            complete: noted.complete,
            yes: noted.yes,
            no_reasoning: noted.no_reasoning,
            heard: noted.heard.iter().map(|path| NotedPath::of(path)).collect(),
        }
    }

    /// As it stands in the log.
    pub(crate) fn to_json(&self) -> Value {
        // It is made of texts, lists and truths, which JSON can always say.
        serde_json::to_value(self).unwrap_or_default()
    }

    /// Reads one from a log.
    ///
    /// # Errors
    /// If it is not one of this command: why, as the end of a sentence about the log.
    pub(crate) fn from_json(note: &Value) -> Result<Self, String> {
        let program = note.get("program").and_then(Value::as_str);
        if program != Some(PROGRAM) {
            return Err(
                "was not written by `plaincall run`; the program that wrote it takes its run up again"
                    .to_owned(),
            );
        }
        serde_json::from_value(note.clone()).map_err(|error| {
            format!(
                "has a note at its beginning that this version does not understand ({error}); use the Plaincall that wrote it"
            )
        })
    }

    /// Whether this is the checksum of the tools file that was noted.
    pub(crate) fn has_tools(&self, crc32: u32) -> bool {
        self.tools_crc32 == checksum(crc32)
    }

    /// How the reply is read.
    ///
    /// # Errors
    /// If the options mean nothing to this version.
    pub(crate) fn dialect(&self) -> Result<DialectOptions, String> {
        let line = std::iter::once(PROGRAM).chain(self.syntax.iter().map(String::as_str));
        Written::try_parse_from(line)
            .map(|written| written.dialect)
            .map_err(|_| {
                format!(
                    "says that the reply is read with `{}`, and this version has no such options; use the Plaincall that wrote it",
                    self.syntax.join(" ")
                )
            })
    }
}

/// A command line with the options of a dialect alone.
#[derive(Debug, Parser)]
struct Written {
    #[command(flatten)]
    dialect: DialectOptions,
}

fn checksum(crc32: u32) -> String {
    format!("{crc32:08x}")
}

/// The options as they are written on a command line.
fn written(options: &DialectOptions) -> Vec<String> {
    // A new option must be added here: without it the reply would be read differently the next time.
    let DialectOptions {
        syntax,
        start_prefix,
        end_prefix,
        arg_prefix,
        markers,
        strict,
        self_closing,
        escaped,
        key,
        reasoning,
        in_reasoning,
    } = options;
    let mut all = Vec::new();
    let mut valued = |name: &str, value: &str| all.push(format!("--{name}={value}"));
    match syntax {
        Some(SyntaxChoice::Block) => valued("syntax", "block"),
        Some(SyntaxChoice::Emoji) => valued("syntax", "emoji"),
        Some(SyntaxChoice::Auto) => valued("syntax", "auto"),
        None => {}
    }
    for (name, value) in [
        ("start-prefix", start_prefix),
        ("end-prefix", end_prefix),
        ("arg-prefix", arg_prefix),
        ("key", key),
    ] {
        if let Some(value) = value {
            valued(name, value);
        }
    }
    if *markers == MarkerPlaces::Anywhere {
        valued("markers", "anywhere");
    }
    if let Some(markers) = reasoning {
        all.push("--reasoning".to_owned());
        all.extend(markers.iter().cloned());
    }
    for (name, is_set) in [
        ("--strict", strict),
        ("--self-closing", self_closing),
        ("--escaped", escaped),
        ("--in-reasoning", in_reasoning),
    ] {
        if *is_set {
            all.push(name.to_owned());
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;
    use std::path::Path;

    use clap::Parser as _;

    use super::{Note, Noted, NotedPath, Written, written};

    #[test]
    fn syntax_options_come_back() {
        for line in [
            "",
            "--syntax=block",
            "--syntax=emoji --strict --self-closing",
            "--start-prefix=<call> --end-prefix=--end --arg-prefix==a --key=k3y --markers=anywhere",
            "--reasoning <think> --</think> --escaped --in-reasoning",
        ] {
            let words: Vec<&str> = line.split_whitespace().collect();
            let options = Written::try_parse_from([&["x"], words.as_slice()].concat()).unwrap();
            let written = written(&options.dialect);
            assert_eq!(written, words, "{line}");
            let again = Written::try_parse_from(
                std::iter::once("x").chain(written.iter().map(String::as_str)),
            );
            let again = again.unwrap().dialect;
            assert_eq!(format!("{again:?}"), format!("{:?}", options.dialect));
        }
    }

    #[test]
    fn paths_come_back() {
        for bytes in [&b"/a b/\xc3\xbc"[..], b"/a/\xff"] {
            let path = Path::new(OsStr::from_bytes(bytes));
            let json = serde_json::to_value(NotedPath::of(path)).unwrap();
            let back: NotedPath = serde_json::from_value(json).unwrap();
            assert_eq!(back.to_path(), path);
        }
    }

    #[test]
    fn notes_come_back() {
        let options = Written::try_parse_from(["x", "--syntax=emoji"]).unwrap();
        let note = Note::new(Noted {
            reply: Some(Path::new("/r")),
            tools: None,
            tools_crc32: 7,
            syntax: &options.dialect,
            complete: true,
            yes: false,
            no_reasoning: true,
            heard: &["/d".into()],
        });
        let json = note.to_json();
        assert_eq!(Note::from_json(&json), Ok(note));
        let mut newer = json.clone();
        newer["other"] = 1.into();
        for (json, part) in [
            (newer, "does not understand"),
            (
                serde_json::Value::Null,
                "was not written by `plaincall run`",
            ),
            (serde_json::json!({"program": "other"}), "was not written"),
        ] {
            let error = Note::from_json(&json).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
