//! Reasons why a call is rejected.

use std::fmt;
use std::iter;

use crate::SuspectMarker;
use crate::suspect_marker::end_of_found;
use plaincall_tool::ReplyDiagnostic;

/// The number of invalid arguments that the message names.
const NAMED_IN_A_SENTENCE: usize = 8;

/// The reason why a call is rejected. `Display` writes one sentence for the model: the problem and the fix.
/// `plaincall_prompt::repair` writes the complete message.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallError {
    /// No tool has this name; the message lists the available tools.
    UnknownTool(String),
    /// The arguments cannot be read; the first error in the text.
    Malformed(String),
    /// An earlier call of the reply has this id.
    DuplicateId(String),
    /// The call, or an earlier one, has no end marker.
    NotClosed {
        /// Why the call needs an end marker.
        why: MissingEnd,
        /// The end marker of the syntax.
        end_marker: String,
    },
    /// The call has an end marker, but a value contains text that was probably meant as one, and there is no gate to
    /// ask.
    SuspectEnd {
        /// The text in the value.
        marker: SuspectMarker,
        /// The end marker of the syntax.
        end_marker: String,
    },
    /// A value contains the start of a call, or text that was probably meant as an end marker, and the marker that ended
    /// the call is in mid-line, so it may belong to a quotation. The field is the end marker of the syntax.
    EndsInQuotation(String),
    /// Text before the call begins like a call, so this call may be part of a value.
    AfterBrokenStart {
        /// The text.
        found: String,
        /// The start marker of the syntax.
        start_marker: String,
    },
    /// This text before the call opens reasoning with markers that the dialect does not have.
    InReasoning(&'static str),
    /// The header of an emoji call ends with ` /`, as calls without a body do in other programs. The field is the end marker.
    SlashInHeader(String),
    /// This reasoning close marker follows the call, and no marker opened the reasoning (`spec/common.md` 5.2).
    MaybeReasoning(String),
    /// The arguments do not match the tool: all errors that [`bind`](crate::bind()) found.
    Arguments(Vec<ReplyDiagnostic>),
    /// The call equals one of an example, with values that the conversation does not contain (`spec/prompt.md` 3.3).
    CopiedExample,
    /// The call has dependencies, but ids are not supported.
    NoDependencies,
    /// The call depends on itself or on calls that wait for it; the message.
    Dependencies(String),
    /// The call depends on ids that no call has; the message.
    UnknownIds(String),
}

/// The reason why a call without an end marker does not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum MissingEnd {
    /// The reply reached its length limit before the end marker.
    Truncated,
    /// The reply ended before the end marker, for an unknown reason.
    MaybeTruncated,
    /// The file ended before the end marker, and it is not known to be complete.
    EndOfFile,
    /// The emoji syntax always requires an end marker.
    NoEndMarker,
    /// The next call began before its end marker.
    EndedByNextCall,
    /// An earlier call of the reply has no end marker, so this call may be part of its text.
    AfterUnclosed,
    /// A value contains a marker or a near miss.
    MarkerInside,
    /// The last value has several lines, so nothing shows where it ended.
    LongLastValue,
    /// The last value ends with a special token, the end tag of another format, or a code fence that nothing opened.
    OtherEnd,
}

impl MissingEnd {
    /// Returns the reason after this one: every reason must be listed here.
    const fn next(self) -> Option<Self> {
        Some(match self {
            Self::Truncated => Self::MaybeTruncated,
            Self::MaybeTruncated => Self::EndOfFile,
            Self::EndOfFile => Self::NoEndMarker,
            Self::NoEndMarker => Self::EndedByNextCall,
            Self::EndedByNextCall => Self::AfterUnclosed,
            Self::AfterUnclosed => Self::MarkerInside,
            Self::MarkerInside => Self::LongLastValue,
            Self::LongLastValue => Self::OtherEnd,
            Self::OtherEnd => return None,
        })
    }
}

impl CallError {
    #[doc(hidden)]
    /// Returns where the text of the model ends in an error of a rejected call that names the marker for the model to write: an
    /// end marker, or after a broken beginning a start marker. `None` for any other error, such as one that contains the marker
    /// because the model wrote it somewhere.
    pub fn own_end(error: &str, marker: &str) -> Option<usize> {
        let not_closed = iter::successors(Some(MissingEnd::Truncated), |why| why.next());
        let not_closed = not_closed.map(|why| Self::NotClosed {
            why,
            end_marker: marker.to_owned(),
        });
        let suspect = [None, Some(String::new())].map(|suggestion| Self::SuspectEnd {
            marker: SuspectMarker {
                found: String::new(),
                suggestion,
                line: 0,
                pointer: None,
            },
            end_marker: marker.to_owned(),
        });
        let whole = [Self::EndsInQuotation, Self::SlashInHeader].map(|of| of(marker.to_owned()));
        let mut whole = not_closed.chain(suspect).chain(whole);
        if whole.any(|one| one.to_string() == error) {
            return Some(0);
        }
        let after = Self::AfterBrokenStart {
            found: String::new(),
            start_marker: marker.to_owned(),
        };
        // It begins with the text of the model between backticks.
        let after = after.to_string();
        let found = after
            .strip_prefix('`')
            .and_then(|own| error.strip_suffix(own));
        found
            .filter(|found| found.starts_with('`'))
            .map(str::len)
            .or_else(|| end_of_found(error, marker))
    }

    #[doc(hidden)]
    pub fn is_about_its_end(&self) -> bool {
        match self {
            Self::NotClosed { why, .. } => *why != MissingEnd::AfterUnclosed,
            Self::SuspectEnd { .. } | Self::EndsInQuotation(_) | Self::SlashInHeader(_) => true,
            _ => false,
        }
    }
}

impl fmt::Display for CallError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::UnknownTool(sentence)
            | Self::Malformed(sentence)
            | Self::Dependencies(sentence)
            | Self::UnknownIds(sentence) => formatter.write_str(sentence),
            Self::DuplicateId(id) => write!(
                formatter,
                "an earlier call of this reply also has the id `{id}`: give every call a unique id"
            ),
            Self::NotClosed { why, end_marker } => match why {
                MissingEnd::Truncated => write!(
                    formatter,
                    "the reply was truncated inside this call: send the whole call again, up to `{end_marker}`"
                ),
                MissingEnd::MaybeTruncated => write!(
                    formatter,
                    "this call may be truncated: send the whole call again, up to `{end_marker}`"
                ),
                MissingEnd::EndOfFile => write!(
                    formatter,
                    "the text ends in this call: send the whole call again, up to `{end_marker}`"
                ),
                MissingEnd::NoEndMarker => write!(
                    formatter,
                    "this call does not end with `{end_marker}`: end every call with it"
                ),
                MissingEnd::EndedByNextCall => write!(
                    formatter,
                    "the next call begins before the `{end_marker}` of this one: end every call before you start another"
                ),
                MissingEnd::AfterUnclosed => write!(
                    formatter,
                    "an earlier call of this reply does not end with `{end_marker}`, so this call may be part of its text: end every call, and send this one again only if you meant it as a call"
                ),
                MissingEnd::MarkerInside => write!(
                    formatter,
                    "this call does not end with `{end_marker}`, and contains text that looks like a marker: end the call with `{end_marker}`"
                ),
                MissingEnd::LongLastValue => write!(
                    formatter,
                    "this call does not end with `{end_marker}`, and its last value has several lines, so its end is not known: end the call with `{end_marker}`"
                ),
                MissingEnd::OtherEnd => write!(
                    formatter,
                    "this call does not end with `{end_marker}`, but with text of another format: end the call with `{end_marker}`"
                ),
            },
            Self::SuspectEnd { marker, end_marker } => match marker.suggestion {
                Some(_) => write!(
                    formatter,
                    "a line of a value looks like the end marker, so this call may have ended there: write it again, end it with exactly `{end_marker}`, and start no line of a value like that"
                ),
                None => write!(
                    formatter,
                    "this call contains the start of another call: end this call with `{end_marker}`, then send the other one too; if you only quote it, escape its markers"
                ),
            },
            Self::EndsInQuotation(end_marker) => write!(
                formatter,
                "a value contains the start of another call, and the `{end_marker}` that ended this call does not begin its line, so it may belong to the value: escape the markers that you quote, and write `{end_marker}` on a line of its own"
            ),
            Self::AfterBrokenStart {
                found,
                start_marker,
            } => write!(
                formatter,
                "`{found}` before this call looks like the start of a call, so this call may be part of its text: start every call with `{start_marker}`, and send this one again only if you meant it as a call"
            ),
            Self::InReasoning(open) => write!(
                formatter,
                "`{open}` before this call opens reasoning, which contains no calls: send the call again after your reasoning. (The setting `reasoning` names the markers of reasoning.)"
            ),
            Self::SlashInHeader(end_marker) => write!(
                formatter,
                "the header of this call ends with ` /`, which does not end a call here: remove it and end the call with `{end_marker}`. (The setting `self-closing` allows it.)"
            ),
            Self::MaybeReasoning(close) => write!(
                formatter,
                "`{close}` follows this call, and nothing before it opened reasoning, so this call may be part of the reasoning: if you meant it, send it again"
            ),
            Self::Arguments(problems) => {
                formatter.write_str("invalid arguments: ")?;
                for (place, problem) in problems.iter().take(NAMED_IN_A_SENTENCE).enumerate() {
                    let separator = if place == 0 { "" } else { "; " };
                    write!(formatter, "{separator}{}", problem.message)?;
                }
                match problems.len().saturating_sub(NAMED_IN_A_SENTENCE) {
                    0 => Ok(()),
                    more => write!(formatter, "; and {more} more"),
                }
            }
            Self::CopiedExample => formatter.write_str(
                "this is the call of an example, and its values are not in this conversation: use the values of the user's question, or answer without a call",
            ),
            Self::NoDependencies => formatter.write_str(
                "this call waits for other calls, which is not supported here: remove the dependencies",
            ),
        }
    }
}

impl std::error::Error for CallError {}
