//! Errors in the definition of a tool.

use std::fmt;

/// An error in the definition of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SpecError {
    /// The location in the schema or the definition, as a JSON Pointer: `/properties/path/enum`, `/positional/1`. Empty
    /// for the whole definition.
    pub at: String,
    /// The problem and the fix, in one sentence.
    pub message: String,
}

impl SpecError {
    #[doc(hidden)]
    pub fn new(at: impl Into<String>, message: impl Into<String>) -> Self {
        Self {
            at: at.into(),
            message: message.into(),
        }
    }

    /// Prefixes the location.
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
