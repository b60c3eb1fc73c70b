//! Calls without an end marker.

use serde::{Deserialize, Serialize};

/// How calls without an end marker are handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Unclosed {
    /// They are rejected, except block calls whose tool only reads, or that end with a complete text and a value of one line.
    #[default]
    Reject,
    /// They run if the next call or the end of a complete text ended them. For models that forget end markers.
    Run,
}

crate::named!(Unclosed { Reject = "reject", Run = "run" });
