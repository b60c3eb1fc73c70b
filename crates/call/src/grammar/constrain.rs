//! Whether replies are constrained.

use super::Engine;

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
    /// Fields of a chat request with which it constrains its reply itself. Such a request gets no grammar.
    pub const REQUEST_FIELDS: [&str; 11] = [
        "ebnf",
        "grammar",
        "guided_choice",
        "guided_grammar",
        "guided_json",
        "guided_regex",
        "json_schema",
        "regex",
        "response_format",
        "structural_tag",
        "structured_outputs",
    ];

    /// The statuses with which servers reject a grammar.
    pub const REJECTIONS: [u16; 4] = [400, 422, 500, 501];

    /// Returns whether a request without a grammar is an error.
    pub fn is_demanded(self) -> bool {
        matches!(self, Self::Always | Self::For(_))
    }
}
