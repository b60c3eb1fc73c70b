//! Text in a call that was probably meant to end it.

use std::fmt;
use std::ops::Range;

use plaincall_syntax::Syntax;
use serde::{Deserialize, Serialize};

use crate::ToolCall;
use plaincall_names::shortened;

const LONGEST_FOUND: usize = 120;

/// Text in a call that was probably meant to end it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[non_exhaustive]
pub struct SuspectMarker {
    /// The text; shortened if it is long.
    pub found: String,
    /// The end marker that was probably meant. `None` for a start marker without an end marker before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub suggestion: Option<String>,
    /// The line, counted from the header of the call, which is line 1.
    pub line: usize,
    /// The pointer of the argument that contains it, in the block syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

impl SuspectMarker {
    /// Returns how the model can fix the call: the end of a sentence.
    pub fn advice(&self) -> String {
        self.suggestion.as_deref().map_or_else(
            || "write both calls again, each with its end marker".to_owned(),
            advice,
        )
    }

    /// Creates it from a range after the header of a call.
    pub(crate) fn new(call: &ToolCall, place: Range<usize>, suggestion: Option<String>) -> Self {
        let raw = call.raw();
        let before = raw.get(..place.start).unwrap_or_default();
        let found = raw.get(place).unwrap_or_default();
        // If bytes that are not UTF-8 were replaced, locations inside the call are not known.
        let is_exact = call.source().map(str::len) == Some(call.span.len());
        let at = call.header.span.end + before.len();
        let mut arguments = call.arguments.iter();
        let argument = arguments.find(|one| is_exact && one.span.range().contains(&at));
        Self {
            found: shortened(found.trim_end(), LONGEST_FOUND).into_owned(),
            suggestion,
            line: before.matches('\n').count() + if call.syntax == Syntax::Block { 2 } else { 1 },
            pointer: argument.map(|one| one.pointer.to_owned()),
        }
    }
}

fn advice(end_marker: &str) -> String {
    format!(
        "write the call again, end it with exactly `{end_marker}`, and start no line of a value with similar text"
    )
}

/// Returns where the text of the model ends in an error that names this end marker as the one that was probably meant: that of a
/// held call that no one approved.
pub(crate) fn end_of_found(error: &str, end_marker: &str) -> Option<usize> {
    let meant = format!("` looks like the end marker `{end_marker}`");
    let (found, own) = error.rsplit_once(&meant)?;
    let is_own = found.starts_with("this call may have been meant to end earlier")
        && (own.ends_with(&advice(end_marker)) || own == "; send it again");
    is_own.then_some(found.len())
}

/// Writes one sentence without a full stop, for people: the text, its location, and the marker that was meant.
impl fmt::Display for SuspectMarker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} of the call", self.line)?;
        if let Some(pointer) = &self.pointer {
            write!(formatter, ", in `{pointer}`")?;
        }
        match &self.suggestion {
            Some(suggestion) => write!(
                formatter,
                ": `{}` looks like the end marker `{suggestion}`",
                self.found
            ),
            None => write!(
                formatter,
                ": `{}` begins a call, so the end marker before it may be missing",
                self.found
            ),
        }
    }
}
