//! Errors, as the host gets them.

use std::fmt::Display;

use serde::Serialize;

/// An error, of a class of the host.
#[derive(Debug, Serialize)]
pub(crate) struct Error {
    kind: &'static str,
    message: String,
}

impl Error {
    /// The options of a dialect cannot be used together, or are not enough for the operation.
    pub(crate) fn dialect(error: impl Display) -> Self {
        Self::new("dialect", error)
    }

    /// An argument cannot be used.
    pub(crate) fn argument(error: impl Display) -> Self {
        Self::new("argument", error)
    }

    pub(crate) fn new(kind: &'static str, error: impl Display) -> Self {
        Self {
            kind,
            message: error.to_string(),
        }
    }

    /// The parser or reader has ended.
    pub(crate) fn finished() -> Self {
        Self::argument("it is finished; create another one for the next text")
    }
}
