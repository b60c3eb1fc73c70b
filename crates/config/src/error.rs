//! Errors of files.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A problem in a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileDiagnostic {
    /// The line, from 1.
    pub line: usize,
    /// The column in characters, from 1.
    pub column: usize,
    /// The byte range in the text.
    pub span: Range<usize>,
    /// The JSON Pointer to the value. Empty for the whole file and for syntax errors.
    pub pointer: String,
    /// The problem and its fix.
    pub message: String,
}

impl fmt::Display for FileDiagnostic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(formatter, "line {line}, column {column}: {}", self.message)
    }
}

/// The problems of a file. Displayed as one line for each problem.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FileError {
    /// The name of the file, for messages.
    pub file: Arc<str>,
    /// All problems, in text order; at least one.
    pub problems: Vec<FileDiagnostic>,
    /// Whether the syntax is valid. A syntax error often causes further ones.
    pub is_well_formed: bool,
}

impl FileError {
    /// Creates the error of a file whose syntax is invalid at a byte offset.
    pub fn syntax(file: impl Into<Arc<str>>, text: &str, at: usize, message: String) -> Self {
        let at = text.floor_char_boundary(at.min(text.len()));
        let (before, rest) = text.split_at(at);
        let last_line = before.rsplit('\n').next().unwrap_or(before);
        let problem = FileDiagnostic {
            line: before.matches('\n').count() + 1,
            column: last_line.chars().count() + 1,
            span: at..at + rest.chars().next().map_or(0, char::len_utf8),
            pointer: String::new(),
            message,
        };
        Self {
            file: file.into(),
            problems: vec![problem],
            is_well_formed: false,
        }
    }
}

impl fmt::Display for FileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, problem) in self.problems.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{}: {problem}", self.file)?;
        }
        Ok(())
    }
}

impl std::error::Error for FileError {}
