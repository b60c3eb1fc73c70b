//! The keywords that a grammar does not enforce.

use std::fmt;

/// A keyword of a schema that a grammar does not enforce.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Unheld {
    /// The name of the tool.
    pub tool: String,
    /// The pointer of the argument, or of a list or object that contains it; empty for all arguments.
    pub pointer: String,
    /// The keyword. `additionalProperties` means that an object may have two equal keys.
    pub keyword: &'static str,
}

/// Writes the tool, the pointer and the keyword, as in ``search: `limit`: `multipleOf` is not enforced``.
impl fmt::Display for Unheld {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: ", self.tool)?;
        if !self.pointer.is_empty() {
            write!(formatter, "`{}`: ", self.pointer)?;
        }
        write!(formatter, "`{}` is not enforced", self.keyword)
    }
}
