//! The handling of calls without an end marker.

use clap::ValueEnum;
use plaincall_reply::Unclosed;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The handling of calls without an end marker.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum UnclosedChoice {
    /// Reject them, with the exceptions above.
    Reject,
    /// Run them if the next call or the end of a complete text ended them.
    Run,
}

impl UnclosedChoice {
    pub(crate) const fn unclosed(self) -> Unclosed {
        match self {
            Self::Reject => Unclosed::Reject,
            Self::Run => Unclosed::Run,
        }
    }
}
