//! What is wrong with a file.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

/// A problem in a file that a person wrote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The line it begins in, from 1.
    pub line: usize,
    /// The character of the line it begins at, from 1.
    pub column: usize,
    /// The part of the text to show, in bytes.
    pub span: Range<usize>,
    /// The value it is about, as a JSON Pointer. Empty for the whole file, and for its syntax.
    pub pointer: String,
    /// What was found and what to do, in one sentence.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (line, column) = (self.line, self.column);
        write!(formatter, "line {line}, column {column}: {}", self.message)
    }
}

/// Why a file cannot be used. It displays as one line for each problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The name of the file, for messages.
    pub file: Arc<str>,
    /// All problems, in the order of the text; at least one.
    pub problems: Vec<Problem>,
    /// Whether the syntax of the file is right. If not, one problem often leads to others behind it.
    pub is_well_formed: bool,
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
