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
    /// The mistakes at these places of a file's text, in the order in which they stand there. The text is gone through
    /// once, however many there are.
    pub fn at(text: &str, mut found: Vec<(Range<usize>, String)>) -> Vec<Self> {
        found.sort_by_key(|(span, _)| span.start);
        let (mut place, mut line, mut column) = (0, 1, 1);
        let mistakes = found.into_iter().map(|(span, message)| {
            let passed = text.get(place..span.start).unwrap_or_default();
            line += passed.matches('\n').count();
            column = match passed.rsplit_once('\n') {
                Some((_, last)) => 1 + last.chars().count(),
                None => column + passed.chars().count(),
            };
            place += passed.len();
            Self {
                line,
                column,
                span,
                message,
            }
        });
        mistakes.collect()
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
    found: Vec<(Range<usize>, String)>,
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
        self.found.push((span, message.into()));
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
        if self.found.is_empty() {
            return Ok(value);
        }
        let mistakes = Mistake::at(self.text, self.found);
        Err(ToolsFileError { mistakes, is_toml })
    }
}
