//! The state machine, which decides what is at the front of a window of input.
//!
//! ```text
//!            header                 argument marker            end of line
//!   Text ───────────► Between ─────────────────────► PointerLine ─────────► Value ─┐
//!    ▲ ▲                 │                                ▲  (too long: PointerRest) │
//!    │ │                 └──────────┐                     └── argument marker ───────┤
//!    │ │      end marker            ▼                                                │
//!    │ └──────────────────────── EndMarker ◄──────────── end marker ─────────────────┤
//!    │      header                                       header of the next call     │
//!    └───────────── Header ◄──── CallEnd ◄───────────────────────────────────────────┘
//!
//!            header              one line end, or none           end marker
//!   Text ───────────► BodyStart ─────────────────────► Body ─────────────────► EndMarker ──► Text
//!
//!   Leading (leading reasoning only): Text before the first character that is not skipped, at the beginning and after
//!   each call and each reasoning
//!
//!            open marker              close marker
//!   Text ─────────────────► Reasoning ──────────────► Text
//! ```
//!
//! The states of `spec/block.md` 1.2 and `spec/emoji.md` 1.3 keep their names. `Header` is the header of a call that
//! ends the previous one; the header of a call after text is parsed in `Text`. `PointerRest`, `EndMarker`, `CallEnd` and
//! `BodyStart` are between two states of `spec/`, for events that take more than one step. Block states are in
//! `block.rs`, emoji states in `emoji.rs`. The machine never stores text: undecided text stays in the
//! window, and [`parser`](crate::parser) presents it again with more text after it.

use std::sync::Arc;

use crate::diagnostic::{Code, Diagnostic};
use crate::dialect::{Dialect, DialectError};
use crate::event::{Part, Syntax, Termination};
use crate::fence::Fences;
use crate::invisible::is_invisible;
use crate::markers::{Family, Found, Markers, Role, Set, Until};
use crate::span::Span;

/// Text that is emitted in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Text,
    Reasoning,
    Value,
    Ignored,
}

/// Events that are emitted in one piece.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Token {
    CallStart {
        syntax: Syntax,
        name: Part,
        id: Part,
        rest: Part,
    },
    Argument {
        pointer: Part,
    },
    BodyStart,
    ValueEnd,
    CallEnd(Termination),
}

/// The result of a step at the front of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Needs more text.
    More(Wait),
    /// This many bytes of content.
    Emit(Content, usize),
    /// One event of this many bytes.
    Whole(Token, usize),
    /// The state has changed; step again.
    Again,
    /// The stream has ended and all events are emitted.
    Done,
}

/// The input that a step waits for, so that a chunk that changes nothing is recognized quickly.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Any text.
    Any,
    /// The rest of a marker: its position in the window, and its index in the set of the state.
    Marker { at: usize, index: usize },
    /// The end of the header or pointer line whose content begins at this position.
    Line { from: usize },
    /// The `]` of the header that begins at this position.
    Bracket { from: usize },
}

impl Wait {
    pub(crate) const fn marker(at: usize, until: Until) -> Self {
        match until {
            Until::More => Self::Any,
            Until::Marker(index) => Self::Marker { at, index },
        }
    }
}

/// The content so far of the line between the header and the first argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LineClass {
    /// Nothing yet: the first column.
    Start,
    Blank,
    /// This many fence characters, fewer than three.
    Fence(u8, usize),
    FenceRest,
    Other,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum State {
    Leading {
        /// Whether invisible characters are skipped too, as at the beginning of the input.
        is_first: bool,
    },
    Text,
    Reasoning,
    Header,
    Between(LineClass),
    PointerLine,
    PointerRest,
    Value,
    /// A value of a call with a fence line before its first argument.
    FencedValue,
    /// The fence line that ends the last value, and the marker after it with its length, unless the stream ends.
    LastFence {
        len: usize,
        ended_by: Option<(Role, usize, bool)>,
    },
    EndMarker {
        len: usize,
        mid_line: bool,
    },
    CallEnd(Termination),
    BodyStart(Family),
    Body(Family),
}

/// The state machine of one stream.
#[allow(
    clippy::struct_excessive_bools,
    reason = "three options, a fact about the line and one about the call, independent of each other"
)]
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    pub(crate) markers: Arc<Markers>,
    pub(crate) anywhere: bool,
    pub(crate) self_closing: bool,
    /// Whether reasoning opens only as the first text, and directly after a call or reasoning.
    leading: bool,
    /// The syntax, once it is known.
    pub(crate) syntax: Option<Syntax>,
    pub(crate) state: State,
    /// Whether the front of the window is the first column of a line in a value.
    pub(crate) first_column: bool,
    /// Whether a call has had its one fence line.
    pub(crate) fenced: bool,
    /// The fences in the current value, in such a call.
    pub(crate) fences: Fences,
    /// The escape prefix directly before the front of the window, if a backslash follows it.
    armed: Option<usize>,
    /// The beginning of something that a later diagnostic will refer to.
    pub(crate) pin: Option<usize>,
    /// The end marker whose next character is not known yet.
    pub(crate) ended: Option<Span>,
    /// How much of the window is known to contain no end of a header or pointer line.
    pub(crate) line_scanned: usize,
    /// How much of the window is known to contain neither `]` nor LF.
    pub(crate) bracket_scanned: usize,
    pending: Pending,
}

impl Machine {
    pub(crate) fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        let mut machine = Self {
            markers: Arc::new(Markers::new(dialect)?),
            anywhere: dialect.anywhere,
            self_closing: dialect.self_closing,
            leading: dialect.leading,
            syntax: dialect.syntax,
            state: text_state(dialect.leading, true),
            first_column: false,
            fenced: false,
            fences: Fences::default(),
            armed: None,
            pin: None,
            ended: None,
            line_scanned: 0,
            bracket_scanned: 0,
            pending: Pending::default(),
        };
        if dialect.in_reasoning {
            machine.state = State::Reasoning;
            machine.pin = Some(0);
        }
        Ok(machine)
    }

    /// Returns to text outside calls, as at the beginning, except that the detected syntax stays.
    pub(crate) fn restart(&mut self) {
        self.state = State::Text;
        self.armed = None;
        self.pin = None;
        self.ended = None;
        self.line_scanned = 0;
        self.bracket_scanned = 0;
        self.pending = Pending::default();
    }

    /// Examines the front of `window`, which is at byte `at` of the input; `end` means that no input follows it. Every
    /// diagnostic reported meanwhile is positioned after the event of this step.
    pub(crate) fn step(&mut self, window: &str, at: usize, end: bool) -> Step {
        match self.state {
            State::Value => self.value(window, at, end),
            State::FencedValue => self.fenced_value(window, at, end),
            State::LastFence { len, ended_by } => self.last_fence(len, ended_by),
            State::Text => self.text(window, at, end),
            State::Leading { is_first } => self.leading(window, at, end, is_first),
            State::Body(family) => self.body(window, at, end, family),
            State::Reasoning => self.reasoning(window, at, end),
            State::Header => self.header(window, at, end),
            State::Between(class) => self.between(window, at, end, class),
            State::PointerLine => self.pointer_line(window, at, end),
            State::PointerRest => self.pointer_rest(window, end),
            State::BodyStart(family) => self.body_start(window, end, family),
            State::EndMarker { len, mid_line } => self.end_marker(len, mid_line, at),
            State::CallEnd(termination) => {
                self.state = match termination {
                    Termination::NextCall => State::Header,
                    Termination::Explicit | Termination::EndOfStream => {
                        text_state(self.leading, false)
                    }
                };
                Step::Whole(Token::CallEnd(termination), 0)
            }
        }
    }

    /// `EndMarker`: the marker of `len` bytes that ends the call.
    #[inline]
    pub(crate) fn end_marker(&mut self, len: usize, mid_line: bool, at: usize) -> Step {
        self.state = text_state(self.leading, false);
        if self.syntax == Some(Syntax::Block) {
            let span = Span::new(at, at + len);
            if mid_line {
                self.report(Code::EndMarkerInMidLine, span, Role::BlockEnd);
            }
            self.ended = Some(span);
        }
        Step::Whole(Token::CallEnd(Termination::Explicit), len)
    }

    /// Returns whether no diagnostic is pending and nothing but the front of the window is undecided.
    #[inline]
    pub(crate) const fn is_settled(&self) -> bool {
        self.armed.is_none() && self.pending.count == 0
    }

    /// Advances the front of the window by `count` bytes.
    #[inline]
    pub(crate) fn consumed(&mut self, count: usize) {
        if self.line_scanned | self.bracket_scanned != 0 {
            self.line_scanned = self.line_scanned.saturating_sub(count);
            self.bracket_scanned = self.bracket_scanned.saturating_sub(count);
        }
    }

    /// Returns whether a zero-width event is pending.
    pub(crate) const fn is_due(&self) -> bool {
        matches!(self.state, State::CallEnd(_))
    }

    /// Returns the next pending diagnostic.
    #[inline]
    pub(crate) fn take_pending(&mut self) -> Option<Diagnostic> {
        if self.pending.count == 0 {
            return None;
        }
        self.pending.take()
    }

    pub(crate) fn report(&mut self, code: Code, span: Span, role: Role) {
        let marker = Arc::clone(self.markers.named(role));
        self.pending.push(Diagnostic {
            code,
            span,
            usage: role.usage(),
            marker,
        });
    }

    /// Emits `len` bytes of content that form an unrecognized marker.
    pub(crate) fn marker_as_content(
        &mut self,
        content: Content,
        code: Code,
        marker: Span,
        role: Role,
        len: usize,
    ) -> Step {
        self.first_column = false;
        self.report(code, marker, role);
        Step::Emit(content, len)
    }

    /// Emits content up to an escape prefix that is followed by a backslash.
    pub(crate) fn arm(&mut self, content: Content, prefix: usize, len: usize) -> Step {
        self.armed = Some(prefix);
        self.first_column = false;
        Step::Emit(content, len)
    }

    /// Handles backslashes directly after an escape prefix: all are content, except the last one before a marker's last character.
    #[inline]
    pub(crate) fn backslashes(
        &mut self,
        set: fn(&Self) -> &Set,
        content: Content,
        window: &str,
        end: bool,
    ) -> Option<Step> {
        self.armed
            .map(|prefix| self.escape_step(prefix, set, content, window, end))
    }

    #[cold]
    fn escape_step(
        &mut self,
        prefix: usize,
        set: fn(&Self) -> &Set,
        content: Content,
        window: &str,
        end: bool,
    ) -> Step {
        let rest = window.trim_start_matches('\\');
        let run = window.len() - rest.len();
        let is_escape = set(self).is_escape(prefix, window, run, end);
        // The last backslash may belong to an escape; those before it do not.
        if is_escape != Some(false) && run > 1 {
            return Step::Emit(content, run - 1);
        }
        let Some(completes) = is_escape else {
            return Step::More(Wait::Any);
        };
        self.armed = None;
        if completes {
            return Step::Emit(Content::Ignored, 1);
        }
        Step::Emit(content, run)
    }

    #[inline]
    pub(crate) fn text_set(&self) -> &Set {
        match self.syntax {
            None => &self.markers.text,
            Some(Syntax::Block) => &self.markers.block_text,
            Some(Syntax::Emoji) => &self.markers.emoji_text,
        }
    }

    fn text(&mut self, window: &str, at: usize, end: bool) -> Step {
        let Some(first) = window.chars().next() else {
            return if end {
                Step::Done
            } else {
                Step::More(Wait::Any)
            };
        };
        if self.is_glued(first) {
            return Step::Again;
        }
        if let Some(step) = self.backslashes(Self::text_set, Content::Text, window, end) {
            return step;
        }
        match self.text_set().find(window.as_bytes(), 0, end) {
            Found::Nothing => Step::Emit(Content::Text, window.len()),
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::EscapePrefix { end: len, prefix } => self.arm(Content::Text, prefix, len),
            Found::Whole { at: 0, len, role } => self.marker_in_text(window, at, end, len, role),
            Found::Partial { at: len, .. } | Found::Whole { at: len, .. } => {
                Step::Emit(Content::Text, len)
            }
        }
    }

    /// Reports an end marker directly before this character if it is part of a word.
    fn is_glued(&mut self, first: char) -> bool {
        let Some(span) = self.ended.take() else {
            return false;
        };
        let is_glued = first.is_alphanumeric() || first == '_';
        if is_glued {
            self.report(Code::EndMarkerGlued, span, Role::BlockEnd);
        }
        is_glued
    }

    fn marker_in_text(
        &mut self,
        window: &str,
        at: usize,
        end: bool,
        len: usize,
        role: Role,
    ) -> Step {
        let span = Span::new(at, at + len);
        match role {
            Role::BlockStart => self.header(window, at, end),
            Role::EmojiStart(family) => self.emoji_header(window, at, end, len, family),
            Role::BlockEnd | Role::BlockArgument | Role::EmojiEnd(_) => {
                self.marker_as_content(Content::Text, Code::StrayMarker, span, role, len)
            }
            Role::ReasoningClose => {
                self.marker_as_content(Content::Text, Code::StrayReasoningClose, span, role, len)
            }
            Role::ReasoningOpen if self.leading => {
                self.marker_as_content(Content::Text, Code::StrayReasoningOpen, span, role, len)
            }
            Role::ReasoningOpen => self.open_reasoning(at, len),
            // Searched for only in header and pointer lines.
            Role::LineEnd => Step::Emit(Content::Text, len),
        }
    }

    fn open_reasoning(&mut self, at: usize, len: usize) -> Step {
        self.state = State::Reasoning;
        self.pin = Some(at);
        Step::Emit(Content::Ignored, len)
    }

    /// `Leading`: characters that are skipped, and the open marker after them. All other text is treated as usual.
    fn leading(&mut self, window: &str, at: usize, end: bool, is_first: bool) -> Step {
        if window
            .chars()
            .next()
            .is_some_and(|first| self.is_glued(first))
        {
            return Step::Again;
        }
        let is_skipped =
            |c: char| matches!(c, ' ' | '\t' | '\r' | '\n') || (is_first && is_invisible(c));
        let rest = window.trim_start_matches(is_skipped);
        let skipped = window.len() - rest.len();
        let open = self.markers.named(Role::ReasoningOpen);
        // Most text needs no search. The open marker may begin with a blank, and must be the longest marker at its position.
        let may_open =
            open.starts_with(is_skipped) || rest.starts_with(&**open) || open.starts_with(rest);
        if !may_open {
            self.state = State::Text;
            return Step::Again;
        }
        match self.text_set().find(window.as_bytes(), 0, end) {
            Found::Nothing if skipped == window.len() && skipped > 0 => {
                Step::Emit(Content::Text, skipped)
            }
            Found::Nothing if window.is_empty() && !end => Step::More(Wait::Any),
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::Whole {
                at: 0,
                len,
                role: Role::ReasoningOpen,
            } => self.open_reasoning(at, len),
            Found::Partial { at: len, .. }
            | Found::Whole {
                at: len,
                role: Role::ReasoningOpen,
                ..
            } if len <= skipped => Step::Emit(Content::Text, len),
            _ => {
                self.state = State::Text;
                Step::Again
            }
        }
    }

    fn reasoning(&mut self, window: &str, at: usize, end: bool) -> Step {
        match self.markers.reasoning.find(window.as_bytes(), 0, end) {
            Found::Nothing if !window.is_empty() => Step::Emit(Content::Reasoning, window.len()),
            Found::Nothing if end => {
                let start = self.pin.take().unwrap_or(at);
                self.report(
                    Code::TruncatedReasoning,
                    Span::new(start, at),
                    Role::ReasoningClose,
                );
                self.state = State::Text;
                Step::Again
            }
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::Nothing | Found::EscapePrefix { .. } => Step::More(Wait::Any),
            Found::Whole { at: 0, len, .. } => {
                self.state = text_state(self.leading, false);
                self.pin = None;
                Step::Emit(Content::Ignored, len)
            }
            Found::Partial { at: len, .. } | Found::Whole { at: len, .. } => {
                Step::Emit(Content::Reasoning, len)
            }
        }
    }
}

/// Returns the state of text outside calls, at its beginning.
const fn text_state(leading: bool, is_first: bool) -> State {
    if leading {
        State::Leading { is_first }
    } else {
        State::Text
    }
}

/// The diagnostics at one position, of which there are at most four.
#[derive(Clone, Debug, Default)]
struct Pending {
    diagnostics: [Option<Diagnostic>; 4],
    first: usize,
    count: usize,
}

impl Pending {
    fn push(&mut self, diagnostic: Diagnostic) {
        let next = self.first + self.count;
        if let Some(place) = self.diagnostics.get_mut(next) {
            *place = Some(diagnostic);
            self.count += 1;
        }
    }

    fn take(&mut self) -> Option<Diagnostic> {
        let diagnostic = self.diagnostics.get_mut(self.first).and_then(Option::take);
        self.count -= 1;
        self.first = if self.count == 0 { 0 } else { self.first + 1 };
        diagnostic
    }
}
