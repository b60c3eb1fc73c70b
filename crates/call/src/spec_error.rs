//! What is wrong with a definition.

use std::fmt;

/// Why a definition of a tool cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecError {
    /// Where in the schema or the definition, as a JSON Pointer: `/properties/path/enum`, `/positional/1`. Empty for
    /// the whole.
    pub at: String,
    /// What is wrong there and what to do, in one sentence.
    pub message: String,
}

impl SpecError {
    pub(crate) fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            message: message.into(),
        }
    }

    /// The same, where the place begins further out.
    pub(crate) fn under(mut self, at: &str) -> Self {
        self.at.insert_str(0, at);
        self
    }
}

impl fmt::Display for SpecError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.at.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "at {}: {}", self.at, self.message)
        }
    }
}

impl std::error::Error for SpecError {}
