//! How a reply ended.

use serde::{Deserialize, Serialize};

/// How a reply ended. It decides which calls without an end marker may run (`spec/common.md` 10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stop {
    /// The text is known to be complete, from a finish reason such as `stop` or from the user.
    Natural,
    /// The text is a file, read to its end. It may have been truncated when it was written.
    EndOfFile,
    /// A length limit stopped the model.
    Length,
    /// The stream was interrupted, or its end is unknown. Use it also for a reply that still arrives.
    Broken,
}

plaincall_names::named!(Stop {
    Natural = "natural",
    EndOfFile = "end_of_file",
    Length = "length",
    Broken = "broken",
});

impl Stop {
    /// Returns `true` if the text is truncated, or may be.
    pub const fn is_truncated(self) -> bool {
        matches!(self, Self::Length | Self::Broken)
    }
}
