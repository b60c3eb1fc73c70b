//! Requests for a grammar that there is not.

use std::fmt;

use plaincall_syntax::DialectError;

/// An error in the request for a grammar.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum GrammarError {
    /// The dialect is invalid, or detects the syntax.
    Dialect(DialectError),
    /// A marker cannot be excluded from other text.
    Marker {
        /// The marker.
        marker: String,
    },
    /// A call is required, but there are no tools.
    NoTools,
    /// The chosen tool does not exist.
    UnknownTool {
        /// The name.
        name: String,
    },
    /// The tool has no call that the grammar can express.
    NoCall {
        /// The name of the tool.
        tool: String,
    },
    /// The grammar is too large for engines.
    TooLarge {
        /// The tool with the largest part.
        tool: String,
        /// The pointer of the value in its arguments with which the grammar is too large; may be empty.
        pointer: String,
        /// The keyword that makes this value large; empty if many values together are.
        keyword: &'static str,
        /// The maximum size in parts.
        most: usize,
    },
}

impl fmt::Display for GrammarError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Dialect(error) => error.fmt(formatter),
            Self::Marker { marker } => write!(
                formatter,
                "the marker `{marker}` can be part of JSON or of the text around another marker, so a grammar cannot exclude it; use other markers"
            ),
            Self::NoTools => formatter.write_str("a call is required, but there are no tools"),
            Self::UnknownTool { name } => {
                write!(formatter, "the chosen tool `{name}` does not exist")
            }
            Self::NoCall { tool } => write!(
                formatter,
                "no call of `{tool}` can be part of a grammar: its name or a required parameter contains a marker, or a required value has no text; use other markers, or leave the tool out"
            ),
            Self::TooLarge {
                tool,
                most,
                keyword: "",
                ..
            } => write!(
                formatter,
                "the grammar has more than {most} parts; the largest tool is `{tool}`: give its deep objects the schema {{\"type\": \"object\"}}, or offer fewer tools"
            ),
            Self::TooLarge {
                tool,
                pointer,
                keyword,
                most,
            } => {
                let looser = match *keyword {
                    "properties" | "additionalProperties" => "{\"type\": \"object\"}",
                    "prefixItems" | "items" => "{\"type\": \"array\"}",
                    _ => "{}",
                };
                let at = if pointer.is_empty() {
                    "the arguments"
                } else {
                    pointer
                };
                write!(
                    formatter,
                    "the grammar has more than {most} parts, or takes too many steps: `{keyword}` of `{at}` of the tool `{tool}` is too large; give it the schema {looser}, or offer fewer tools"
                )
            }
        }
    }
}

impl std::error::Error for GrammarError {}

impl From<DialectError> for GrammarError {
    fn from(error: DialectError) -> Self {
        Self::Dialect(error)
    }
}
