//! The effect of a tool.

use serde::{Deserialize, Serialize};

/// The effect of a tool on the world.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum Effect {
    /// It changes nothing.
    Read,
    /// It may change something, but repeating it has no further effect.
    Idempotent,
    /// It may change something. The default for tools without a declared effect.
    #[default]
    Write,
}

crate::named!(Effect {
    Read = "read",
    Idempotent = "idempotent",
    Write = "write",
});
