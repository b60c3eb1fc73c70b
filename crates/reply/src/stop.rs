//! How a reply ended.

use plaincall_names::FinishReason;
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
    /// Interprets the finish reason of an API, ignoring case (`spec/common.md` 10). Servers have many words for failures,
    /// so any other reason is [`Broken`](Self::Broken). So is a stop sequence, which may be in the middle of a call.
    ///
    /// ```
    /// use plaincall_reply::Stop;
    ///
    /// assert_eq!(Stop::from_finish_reason("end_turn"), Stop::Natural);
    /// assert_eq!(Stop::from_finish_reason("MAX_TOKENS"), Stop::Length);
    /// assert_eq!(Stop::from_finish_reason("content_filter"), Stop::Broken);
    /// ```
    pub fn from_finish_reason(reason: &str) -> Self {
        match FinishReason::of(reason) {
            FinishReason::Stop | FinishReason::ToolCalls | FinishReason::FunctionCall => {
                Self::Natural
            }
            FinishReason::Length => Self::Length,
            FinishReason::StopSequence | FinishReason::ContentFilter | FinishReason::Other => {
                Self::Broken
            }
        }
    }

    /// Returns `true` if the text is truncated, or may be.
    pub const fn is_truncated(self) -> bool {
        matches!(self, Self::Length | Self::Broken)
    }
}
