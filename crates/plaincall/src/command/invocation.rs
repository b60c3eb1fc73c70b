//! Commands in executable form, and the values of their placeholders in a call.

use std::ffi::{OsStr, OsString};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plaincall_tool::{Arguments, ToolSpec};

use crate::command::interpreted::Interpreted;
use crate::command::template::Piece;
use crate::run_directory::Directories;
use crate::tool_error::Failure;

/// The prefix of the variables that describe the call.
pub(crate) const OWN_PREFIX: &str = "PLAINCALL_";

#[derive(Clone, Debug)]
pub(crate) enum Line {
    Program(Vec<Vec<Piece>>),
    Shell(Script),
    /// The parameter whose text is the script.
    Written(Piece),
}

/// A script and its parameters, from `${1}` on.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    pub(crate) text: String,
    pub(crate) parameters: Vec<Piece>,
}

impl Script {
    pub(crate) fn new(pieces: Vec<Piece>) -> Self {
        let mut script = Self {
            text: String::new(),
            parameters: Vec::new(),
        };
        for piece in pieces {
            if let Piece::Text(text) = piece {
                script.text.push_str(&text);
                continue;
            }
            let known = script.parameters.iter().position(|known| *known == piece);
            let place = known.unwrap_or(script.parameters.len());
            if known.is_none() {
                script.parameters.push(piece);
            }
            let _ = write!(script.text, "${{{}}}", place + 1);
        }
        script
    }
}

/// How much longer than its grace period the end of a command may take.
pub(crate) const MARGIN: Duration = Duration::from_secs(3);

#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    pub(crate) spec: ToolSpec,
    pub(crate) line: Line,
    pub(crate) directory: Vec<Piece>,
    pub(crate) tools_directory: PathBuf,
    pub(crate) environment: Vec<String>,
    pub(crate) output_limit: usize,
    pub(crate) keeps_both_ends: bool,
    pub(crate) interpreted: Vec<Interpreted>,
}

impl Invocation {
    /// Returns the command line or script for these arguments, for display.
    pub(crate) fn text(&self, arguments: &Arguments) -> Option<String> {
        let fill = Fill {
            arguments: &self.spec.with_defaults(arguments),
            directories: &Directories {
                current: "{directory:current}".into(),
                run: Some("{directory:run}".into()),
            },
            tools_directory: &self.tools_directory,
        };
        // A call with arguments that cannot be filled in does not start, so there is nothing to show.
        let text = match &self.line {
            Line::Program(elements) => {
                let words = fill.elements(elements).ok()?;
                let words: Vec<String> = words.iter().map(|word| quoted(word)).collect();
                words.join(" ")
            }
            Line::Shell(script) => {
                let mut text = script.text.trim_end().to_owned();
                for (place, parameter) in script.parameters.iter().enumerate() {
                    let value = fill.piece(parameter).ok()?.unwrap_or_default();
                    let _ = write!(text, "\n# ${{{}}} is {}", place + 1, quoted(&value));
                }
                text
            }
            Line::Written(parameter) => {
                let script = fill.piece(parameter).ok()??;
                script.to_string_lossy().trim_end().to_owned()
            }
        };
        Some(text)
    }

    pub(crate) fn directory(&self, directories: &Directories) -> Option<PathBuf> {
        let fill = Fill {
            // The working directory contains no arguments.
            arguments: &Arguments::default(),
            directories,
            tools_directory: &self.tools_directory,
        };
        fill.whole(&self.directory).ok().map(PathBuf::from)
    }

    pub(crate) fn needs(&self, directory: &Piece) -> bool {
        let pieces: Box<dyn Iterator<Item = &Piece>> = match &self.line {
            Line::Program(elements) => Box::new(elements.iter().flatten()),
            Line::Shell(script) => Box::new(script.parameters.iter()),
            Line::Written(parameter) => Box::new(std::iter::once(parameter)),
        };
        pieces
            .chain(&self.directory)
            .any(|piece| piece == directory)
    }
}

/// The values of placeholders in a call.
pub(crate) struct Fill<'a> {
    pub(crate) arguments: &'a Arguments,
    pub(crate) directories: &'a Directories,
    pub(crate) tools_directory: &'a Path,
}

impl Fill<'_> {
    pub(crate) fn elements(&self, elements: &[Vec<Piece>]) -> Result<Vec<OsString>, Failure> {
        let mut line = Vec::new();
        for element in elements {
            if let [only] = element.as_slice() {
                line.extend(self.piece(only)?);
            } else {
                line.push(self.whole(element)?);
            }
        }
        Ok(line)
    }

    pub(crate) fn whole(&self, pieces: &[Piece]) -> Result<OsString, Failure> {
        let mut whole = OsString::new();
        for piece in pieces {
            whole.push(self.piece(piece)?.unwrap_or_default());
        }
        Ok(whole)
    }

    /// Returns the value of a piece; `None` for an omitted argument.
    pub(crate) fn piece(&self, piece: &Piece) -> Result<Option<OsString>, Failure> {
        Ok(Some(match piece {
            Piece::Text(text) => text.into(),
            Piece::CurrentDirectory => self.directories.current.clone().into(),
            Piece::RunDirectory => self.directories.run.clone().unwrap_or_default().into(),
            Piece::ToolsDirectory => self.tools_directory.into(),
            Piece::Argument(name) => match self.arguments.get(name) {
                Some(text) if text.contains('\0') => {
                    return Err(failure(format!(
                        "the argument `{name}` contains a NUL character, which a command line cannot contain"
                    )));
                }
                Some(text) => text.into(),
                None if self.has_parts(name) => {
                    return Err(failure(format!(
                        "the argument `{name}` is a list or an object, but the tool takes a string"
                    )));
                }
                None => return Ok(None),
            },
        }))
    }

    /// Returns whether an argument is a list or an object.
    fn has_parts(&self, name: &str) -> bool {
        let is_part = |pointer: &str| {
            pointer
                .strip_prefix(name)
                .is_some_and(|rest| rest.starts_with('/'))
        };
        self.arguments
            .iter()
            .any(|argument| is_part(argument.pointer))
    }
}

fn quoted(word: &OsStr) -> String {
    let word = word.to_string_lossy();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=@%+,".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.into_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

pub(crate) fn failure(message: impl Into<String>) -> Failure {
    Failure::new(message, None)
}
