//! What is wrong with a tools file.

use std::fmt;
use std::ops::Range;

/// One mistake in a file that people write, such as a tools file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line it begins in, from 1.
    pub line: usize,
    /// The character of the line it begins at, from 1.
    pub column: usize,
    /// Where it stands, in bytes.
    pub span: Range<usize>,
    /// What was found and what to do, in one sentence.
    pub message: String,
}

impl Mistake {
    /// A mistake at this place of a file's text.
    pub fn at(text: &str, span: Range<usize>, message: impl Into<String>) -> Self {
        let before = text.get(..span.start).unwrap_or(text);
        let line = before.rsplit('\n').next().unwrap_or_default();
        Self {
            line: before.matches('\n').count() + 1,
            column: line.chars().count() + 1,
            span,
            message: message.into(),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            line,
            column,
            message,
            ..
        } = self;
        write!(formatter, "line {line}, column {column}: {message}")
    }
}

/// Why a tools file cannot be used. It shows itself with one line for each mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolsFileError {
    /// All mistakes in the order in which they stand in the file; at least one.
    pub mistakes: Vec<Mistake>,
    /// Whether the file could be read as TOML. If not, one mistake often leads to others behind it, and nothing is
    /// known about the tools.
    pub is_toml: bool,
}

impl fmt::Display for ToolsFileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, mistake) in self.mistakes.iter().enumerate() {
            let separator = if index == 0 { "" } else { "\n" };
            write!(formatter, "{separator}{mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ToolsFileError {}

/// The mistakes found so far.
pub(super) struct Mistakes<'t> {
    text: &'t str,
    found: Vec<Mistake>,
    /// Whether the text is TOML.
    pub(super) is_toml: bool,
}

impl<'t> Mistakes<'t> {
    pub(super) fn new(text: &'t str) -> Self {
        Self {
            text,
            found: Vec::new(),
            is_toml: true,
        }
    }

    pub(super) fn add(&mut self, span: Range<usize>, message: impl Into<String>) {
        self.found.push(Mistake::at(self.text, span, message));
    }

    /// Where the part stands inside the span, if it stands there so many times; `occurrence` counts from 0.
    pub(super) fn narrow(&self, span: Range<usize>, part: &str, occurrence: usize) -> Range<usize> {
        let text = self.text.get(span.clone()).unwrap_or_default();
        match text.match_indices(part).map(|(at, _)| at).nth(occurrence) {
            Some(at) if !part.is_empty() => span.start + at..span.start + at + part.len(),
            _ => span,
        }
    }

    pub(super) fn count(&self) -> usize {
        self.found.len()
    }

    pub(super) fn into_result<T>(self, value: T) -> Result<T, ToolsFileError> {
        let is_toml = self.is_toml;
        let mut mistakes = self.found;
        if mistakes.is_empty() {
            return Ok(value);
        }
        mistakes.sort_by_key(|mistake| mistake.span.start);
        Err(ToolsFileError { mistakes, is_toml })
    }
}
