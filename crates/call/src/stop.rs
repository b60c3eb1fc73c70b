//! How a reply ended.

use serde::{Deserialize, Serialize};

/// How a reply ended: what decides which calls without an end marker may run (`spec/common.md` 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The text is known to be complete: a finish reason such as `stop`, or the user, says so.
    Natural,
    /// The text is a file that was read to its end. It may have been truncated when it was written.
    EndOfFile,
    /// The model was stopped by a limit of length.
    Length,
    /// The stream broke, or nothing is known about its end. A reply that still arrives is judged as one that ends so.
    Broken,
}

impl Stop {
    /// Whether the text is truncated, or nothing says that it is not.
    pub const fn is_truncated(self) -> bool {
        matches!(self, Self::Length | Self::Broken)
    }
}
