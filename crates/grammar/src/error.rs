//! Requests for a grammar that there is not.

use plaincall_syntax::DialectError;

/// An error in the request for a grammar.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum GrammarError {
    /// The dialect is invalid, or detects the syntax.
    #[error("{0}")]
    Dialect(#[from] DialectError),
    /// A marker cannot be excluded from other text.
    #[error(
        "the marker `{marker}` can be part of JSON or of the text around another marker, so a grammar cannot exclude it; use other markers"
    )]
    Marker {
        /// The marker.
        marker: String,
    },
    /// A call is required, but there are no tools.
    #[error("a call is required, but there are no tools")]
    NoTools,
    /// The chosen tool does not exist.
    #[error("the chosen tool `{name}` does not exist")]
    UnknownTool {
        /// The name.
        name: String,
    },
    /// The tool has no call that the grammar can express.
    #[error(
        "no call of `{tool}` can be part of a grammar: its name or a required parameter contains a marker, or a required value has no text; use other markers, or leave the tool out"
    )]
    NoCall {
        /// The name of the tool.
        tool: String,
    },
    /// The grammar is too large for engines.
    #[error("{}", too_large(tool, pointer, keyword, *most))]
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

/// States what to change about a tool that is too large.
fn too_large(tool: &str, pointer: &str, keyword: &str, most: usize) -> String {
    if keyword.is_empty() {
        return format!(
            "the grammar has more than {most} parts; the largest tool is `{tool}`: give its deep objects the schema {{\"type\": \"object\"}}, or offer fewer tools"
        );
    }
    let looser = match keyword {
        "properties" | "additionalProperties" => "{\"type\": \"object\"}",
        "prefixItems" | "items" => "{\"type\": \"array\"}",
        _ => "{}",
    };
    let at = if pointer.is_empty() {
        "the arguments"
    } else {
        pointer
    };
    format!(
        "the grammar has more than {most} parts, or takes too many steps: `{keyword}` of `{at}` of the tool `{tool}` is too large; give it the schema {looser}, or offer fewer tools"
    )
}
