//! The rule for which calls may run (`spec/common.md` 10).

use std::fmt;
use std::sync::Arc;

use plaincall_syntax::{
    Dialect, DialectError, EventKind, MarkerUse, NearMiss, NearMisses, Parser, Syntax, Termination,
};

use serde::{Deserialize, Serialize};

use crate::call::ToolCall;
use crate::nearest::shortened;
use crate::tool::{Effect, ToolSpec};

/// The longest suspect text that is kept, in bytes.
const LONGEST_FOUND: usize = 120;

/// What is known about the end of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Completeness {
    /// The text is complete: a natural finish reason such as `stop`, or the user, says so.
    Complete,
    /// The text is a file that was read to its end. Whoever wrote the file may have stopped too early.
    EndOfFile,
    /// The text is truncated, or nothing says that it is not.
    Truncated,
}

/// What happens to calls without an end marker.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Unclosed {
    /// They are rejected, except where the tool only reads or the text is known to be complete.
    #[default]
    Reject,
    /// They run if the next call or the end of a complete text ended them: for models that forget end markers.
    Run,
}

/// Decides which calls of a reply may run (`spec/common.md` 10). It is asked about every call of the reply, in order.
///
/// ```
/// use plaincall_call::{Completeness, Document, MayRun, ReplyCheck, Unclosed};
/// use plaincall_syntax::Dialect;
///
/// let dialect = Dialect::block();
/// let mut check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let reply = "!!!GADGET_START:save\n!!!ARG:text\nhello\n!!!GADGT_END\nDone.\n!!!GADGET_END";
/// let document = Document::parse(reply, &dialect)?;
/// let call = document.calls().next().expect("a call");
/// let Ok(MayRun::Held(suspect)) = check.may_run(call, None, Completeness::Complete) else {
///     panic!("a near miss of the end marker");
/// };
/// assert_eq!(
///     suspect.to_string(),
///     "line 4 of the call, in `text`: `!!!GADGT_END` looks like the end marker `!!!GADGET_END`"
/// );
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReplyCheck {
    markers: Arc<OwnMarkers>,
    unclosed: Unclosed,
    /// Whether an earlier call of the reply has no end marker, so that later ones may be quotations in its last value.
    is_doubtful: bool,
}

/// The decision about a call that is not rejected.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum MayRun {
    /// It may run.
    Yes,
    /// It may run only if the gate allows this very call: it may have been meant to end earlier.
    Held(SuspectMarker),
}

/// Text in a call that was probably meant to end it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct SuspectMarker {
    /// The text; its beginning if it is long.
    pub found: String,
    /// The end marker that was probably meant. `None` for a start marker, in front of which the end marker is missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meant: Option<String>,
    /// Its line, counted from the header of the call, which is line 1.
    pub line: usize,
    /// The pointer of the argument that contains it, in the block syntax.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
}

/// Why a call is rejected. [`sentence`](Self::sentence) explains it to people and models.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotRun {
    /// Its arguments are wrong; the first error.
    Wrong(String),
    /// An earlier call of the turn has the same id.
    DuplicateId(String),
    /// The text ended before its end marker, and is not known to be complete.
    Truncated,
    /// It has no end marker, which the emoji syntax always asks for.
    NoEndMarker,
    /// The next call began before its end marker.
    EndedByNextCall,
    /// An earlier call of the reply has no end marker, so this one may be a quotation in it.
    AfterUnclosed,
    /// It has no end marker, and a value contains a marker or a near miss of one.
    MarkerInside,
    /// It has an end marker, but a value contains what was probably meant as one.
    Suspect(SuspectMarker),
    /// This reasoning close marker is behind it, and nothing opened the reasoning (`spec/common.md` 5.2).
    MaybeReasoning(String),
}

/// What is looked for in the values of a call.
#[derive(Debug)]
struct OwnMarkers {
    block: Option<NearMisses>,
    emoji: Option<EmojiMarkers>,
}

#[derive(Debug)]
struct EmojiMarkers {
    near: NearMisses,
    /// A parser that has read nothing.
    blank: Parser,
}

impl ReplyCheck {
    /// A check for replies in `dialect`.
    ///
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub fn new(dialect: &Dialect, unclosed: Unclosed) -> Result<Self, DialectError> {
        let own = |syntax| {
            let is_read = dialect.syntax().is_none_or(|only| only == syntax);
            is_read.then(|| dialect.for_syntax(syntax).without_reasoning())
        };
        let block = own(Syntax::Block).map(|own| NearMisses::new(&own));
        let emoji = own(Syntax::Emoji).map(|own| {
            Ok(EmojiMarkers {
                near: NearMisses::new(&own)?,
                blank: Parser::new(&own)?,
            })
        });
        Ok(Self {
            markers: Arc::new(OwnMarkers {
                block: block.transpose()?,
                emoji: emoji.transpose()?,
            }),
            unclosed,
            is_doubtful: false,
        })
    }

    /// The same check with another choice for calls without an end marker.
    #[must_use]
    pub fn unclosed(mut self, unclosed: Unclosed) -> Self {
        self.unclosed = unclosed;
        self
    }

    /// Begins the next reply.
    pub fn begin_reply(&mut self) {
        self.is_doubtful = false;
    }

    /// Decides about the next call of the reply. `tool` is the tool that it names, if there is one; `end` is what is known
    /// about the end of the text.
    ///
    /// # Errors
    /// Returns the reason if the call is rejected, whatever the gate says.
    pub fn may_run(
        &mut self,
        call: &ToolCall,
        tool: Option<&ToolSpec>,
        end: Completeness,
    ) -> Result<MayRun, NotRun> {
        let is_read = tool.is_some_and(|tool| tool.effect == Effect::Read);
        let has_doubtful_start = self.is_doubtful && !is_read;
        let ended = self.by_its_end(call, is_read, end);
        self.is_doubtful |= ended.is_err() && call.termination == Termination::NextCall;
        let may_run = ended?;
        if has_doubtful_start {
            return Err(NotRun::AfterUnclosed);
        }
        let is_mended = || tool.is_some_and(|tool| call.mended(tool).is_some());
        if let Some(error) = call.parse_error.as_ref().filter(|_| !is_mended()) {
            return Err(NotRun::Wrong(error.clone()));
        }
        if call.is_duplicate {
            return Err(NotRun::DuplicateId(call.id.clone()));
        }
        Ok(may_run)
    }

    /// The table of `spec/common.md` 10.
    fn by_its_end(
        &self,
        call: &ToolCall,
        is_read: bool,
        end: Completeness,
    ) -> Result<MayRun, NotRun> {
        if call.termination == Termination::Explicit {
            return Ok(self.suspect(call).map_or(MayRun::Yes, MayRun::Held));
        }
        if call.marker_in_value || self.near_misses(call).next().is_some() {
            return Err(NotRun::MarkerInside);
        }
        let is_lifted = self.unclosed == Unclosed::Run;
        let (is_enough, reason) = match (call.termination, call.syntax) {
            (Termination::NextCall, _) => (is_read || is_lifted, NotRun::EndedByNextCall),
            (_, Syntax::Emoji) => (
                is_lifted && end != Completeness::Truncated,
                if is_lifted {
                    NotRun::Truncated
                } else {
                    NotRun::NoEndMarker
                },
            ),
            (_, Syntax::Block) => (
                match end {
                    Completeness::Complete => true,
                    Completeness::EndOfFile => is_read || is_lifted,
                    Completeness::Truncated => false,
                },
                NotRun::Truncated,
            ),
        };
        if is_enough {
            Ok(MayRun::Yes)
        } else {
            Err(reason)
        }
    }

    /// What was probably meant to end a call that ended later.
    fn suspect(&self, call: &ToolCall) -> Option<SuspectMarker> {
        let end = MarkerUse::End(call.syntax);
        let near = self
            .near_misses(call)
            .find(|near_miss| near_miss.usage == end);
        if let Some(NearMiss { span, meant, .. }) = near {
            return Some(SuspectMarker::new(call, span.range(), Some(meant)));
        }
        let emoji = self.markers.emoji.as_ref()?;
        if call.syntax != Syntax::Emoji || !call.marker_in_value {
            return None;
        }
        let mut parser = emoji.blank.clone();
        let header = parser
            .feed(call.raw())
            .find(|event| matches!(event.kind, EventKind::CallStart(_)))?
            .span;
        Some(SuspectMarker::new(call, header.range(), None))
    }

    fn near_misses<'c>(&'c self, call: &'c ToolCall) -> impl Iterator<Item = NearMiss> + 'c {
        let patterns = match call.syntax {
            Syntax::Block => self.markers.block.as_ref(),
            Syntax::Emoji => self.markers.emoji.as_ref().map(|emoji| &emoji.near),
        };
        patterns
            .into_iter()
            .flat_map(|patterns| patterns.find_in_first_column(call.raw()))
    }
}

impl MayRun {
    /// The decision where there is no gate that a held call could wait for.
    ///
    /// # Errors
    /// Rejects a held call.
    pub fn unless_held(self) -> Result<(), NotRun> {
        match self {
            Self::Yes => Ok(()),
            Self::Held(suspect) => Err(NotRun::Suspect(suspect)),
        }
    }
}

impl SuspectMarker {
    /// The text at this place behind the header of a call.
    fn new(call: &ToolCall, place: std::ops::Range<usize>, meant: Option<String>) -> Self {
        let raw = call.raw();
        let before = raw.get(..place.start).unwrap_or_default();
        let found = raw.get(place).unwrap_or_default();
        // Where bytes that are not UTF-8 were replaced, places inside the call are not known.
        let is_exact = call.source().map(str::len) == Some(call.span.len());
        let at = call.header_span.end + before.len();
        let mut arguments = call.arguments.iter();
        let argument = arguments.find(|one| is_exact && one.span.range().contains(&at));
        Self {
            found: shortened(found.trim_end(), LONGEST_FOUND).into_owned(),
            meant,
            line: before.matches('\n').count() + if call.syntax == Syntax::Block { 2 } else { 1 },
            pointer: argument.map(|one| one.pointer.to_owned()),
        }
    }
}

/// One sentence without a full stop, for people: what was found, where, and what was meant.
impl fmt::Display for SuspectMarker {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "line {} of the call", self.line)?;
        if let Some(pointer) = &self.pointer {
            write!(formatter, ", in `{pointer}`")?;
        }
        match &self.meant {
            Some(meant) => write!(
                formatter,
                ": `{}` looks like the end marker `{meant}`",
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

impl NotRun {
    /// One sentence that says what is wrong and what to do. `end_marker` is the end marker in force.
    pub fn sentence(&self, end_marker: &str) -> String {
        match self {
            Self::Wrong(error) => error.clone(),
            Self::DuplicateId(id) => {
                format!(
                    "an earlier call of this reply has the id `{id}` too: give every call an id of its own"
                )
            }
            Self::Truncated => format!(
                "the text ended before this call was closed: write the whole call again and close it with `{end_marker}`"
            ),
            Self::NoEndMarker => {
                format!("this call is not closed: close every call with `{end_marker}`")
            }
            Self::EndedByNextCall => format!(
                "this call is not closed, the next call began inside it: close every call with `{end_marker}` before you begin another one"
            ),
            Self::AfterUnclosed => format!(
                "an earlier call of this reply is not closed, so this call may be part of its text: close every call with `{end_marker}`, and write this one again only if it is a call of its own"
            ),
            Self::MarkerInside => format!(
                "this call is not closed and a value contains a marker or text like one, so it may contain other calls: close every call with `{end_marker}`"
            ),
            Self::Suspect(SuspectMarker { meant: Some(_), .. }) => format!(
                "a line of a value looks like the end marker, so this call may have ended there: write it again, close it with exactly `{end_marker}`, and begin no line of a value like that"
            ),
            Self::MaybeReasoning(close) => format!(
                "`{close}` is behind this call and nothing before it opened reasoning, so this call may be part of the reasoning: if it was meant, write it again"
            ),
            Self::Suspect(SuspectMarker { meant: None, .. }) => format!(
                "the body contains the start of another call, so this call may have ended before it: write both again and close every call with `{end_marker}`"
            ),
        }
    }
}

impl fmt::Display for NotRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.sentence("the end marker"))
    }
}
