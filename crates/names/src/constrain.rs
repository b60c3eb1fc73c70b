//! Whether replies are constrained.

use crate::Engine;

/// Whether the model server constrains replies with a grammar, so that the model cannot write an invalid call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Constrain {
    /// Without a grammar.
    #[default]
    Never,
    /// With a grammar if the list of models names an engine that accepts one. If the server rejects the grammar, the request is
    /// sent again without it.
    Auto,
    /// With a grammar. A request whose reply cannot be constrained is rejected.
    Always,
    /// As [`Always`](Self::Always), for this engine, which is not detected.
    For(Engine),
}

impl Constrain {
    /// Returns whether a request without a grammar is an error.
    pub fn is_demanded(self) -> bool {
        matches!(self, Self::Always | Self::For(_))
    }
}
