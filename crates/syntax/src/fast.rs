//! The fast path: what is frequent, taken off the exact path.
//!
//! It has no rules of its own. For what stands at the front of the window it does in one go what the state machine
//! does in several steps, where the chunk shows all of it; as soon as anything is unusual or undecided it changes
//! nothing and is *unsure*, and the exact path in [`parser`](crate::parser), [`machine`](crate::machine), `block.rs`
//! and `emoji.rs` takes over. Without this file the parser would say the same, more slowly; the tests hold both against
//! the oracle ([`Parser::without_fast_path`]).
//!
//! What it knows:
//!
//! - content up to the first place where a marker or an escape may begin, straight from the chunk ([`plain_event`]);
//! - markers, header lines and pointer lines that the chunk holds whole ([`fast_event`]);
//! - while something is held: a chunk that leaves it undecided, one that ends it at its first byte, and one that
//!   ends a line ([`held_event`]).
//!
//! [`plain_event`]: Parser::plain_event
//! [`fast_event`]: Parser::fast_event
//! [`held_event`]: Parser::held_event

use crate::LINE_LIMIT;
use crate::block::{HeaderParts, LineClass, after_content, open_line_end, trimmed};
use crate::event::{Event, Part};
use crate::machine::{Content, Machine, State, Step, Token, Wait};
use crate::markers::{Look, Role, Set, Until};
use crate::parser::{Chunk, Parser, content_event};
use crate::piece::{INLINE, Piece};
use crate::span::Span;

/// What the fast path has found.
pub(crate) enum Fast<'c> {
    Event(Event<'c>),
    /// The chunk holds no further event.
    Done,
    /// The exact path must tell.
    Unsure,
}

impl Parser {
    /// Content up to the first place where a marker or an escape may begin; in a value less the line end before it.
    /// `None` if there is none, or if the state needs care.
    #[allow(
        clippy::inline_always,
        reason = "measured: events of plain content then pass through memory once less"
    )]
    #[inline(always)]
    pub(crate) fn plain_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        let rest = chunk.rest();
        if rest.is_empty() || self.is_held() || !self.is_settled() || self.machine.ended.is_some() {
            return None;
        }
        let (content, set) = self.machine.content()?;
        let mut len = set.plain_len(rest.as_bytes());
        if content == Content::Value && !matches!(self.machine.state, State::Body(_)) {
            // The line end before a marker, or a carriage return that may become one, is not the value's yet.
            let text = rest.as_bytes().get(..len)?;
            len -= open_line_end(text, false);
            self.machine.first_column = *text.get(len.checked_sub(1)?)? == b'\n';
        }
        if len == 0 {
            return None;
        }
        Some(self.content_of_chunk(content, rest.get(..len)?, chunk))
    }

    #[inline]
    fn content_of_chunk<'c>(
        &mut self,
        content: Content,
        text: &'c str,
        chunk: &mut Chunk<'c>,
    ) -> Event<'c> {
        let start = self.position;
        self.position += text.len();
        self.machine.consumed(text.len());
        chunk.taken += text.len();
        chunk.is_done = chunk.is_used_up();
        content_event(
            content,
            Piece::borrowed(text),
            Span::new(start, self.position),
        )
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.is_fast && self.content_left == 0 && self.machine.is_settled()
    }

    /// What stands at the front of the window, if the chunk shows all of it.
    pub(crate) fn fast_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let rest = chunk.rest();
        if rest.is_empty() || !self.is_settled() {
            return Fast::Unsure;
        }
        if self.is_held() {
            return self.held_event(chunk);
        }
        loop {
            return match self.machine.state {
                State::Text => self.text_event(rest, chunk),
                State::Value => self.value_event(rest, chunk),
                State::Body(_) => self.body_event(rest, chunk),
                State::EndMarker { len, mid_line } => {
                    let step = self.machine.end_marker(len, mid_line, self.position);
                    self.event_of(step, chunk)
                }
                State::PointerLine => self.pointer_event(rest, chunk),
                State::Header => {
                    let marker = self.machine.markers.start.len();
                    self.header_event(rest, marker, chunk)
                }
                State::BodyStart(family) => {
                    let step = self.machine.body_start(rest, false, family);
                    self.event_of(step, chunk)
                }
                State::Between(LineClass::Start) if self.machine.pin.is_none() => {
                    let look = self.machine.markers.between.look(rest.as_bytes(), 0, false);
                    match look {
                        Look::Whole { len, role } if role != Role::BlockStart => {
                            self.machine.state = after_content(role, len, false);
                            continue;
                        }
                        look => self.hold_beginning(&look, 0, chunk),
                    }
                }
                _ => Fast::Unsure,
            };
        }
    }

    /// What the machine has found, as an event.
    fn event_of<'c>(&mut self, step: Step, chunk: &mut Chunk<'c>) -> Fast<'c> {
        match step {
            Step::Whole(token, len) => Fast::Event(self.whole_event(token, len, chunk)),
            Step::More(wait) => self.hold_all(wait, chunk),
            Step::Emit(content, len) => {
                self.content = content;
                self.content_left = len;
                Fast::Unsure
            }
            Step::Again | Step::Done => Fast::Unsure,
        }
    }

    /// Holds all that is left of the chunk.
    fn hold_all<'c>(&mut self, wait: Wait, chunk: &mut Chunk<'_>) -> Fast<'c> {
        self.wait = wait;
        self.hold_rest(chunk);
        Fast::Done
    }

    /// Holds what is left of the chunk if it is a beginning of a marker, or a line end of `at` bytes and that.
    fn hold_beginning<'c>(&mut self, look: &Look, at: usize, chunk: &mut Chunk<'_>) -> Fast<'c> {
        match *look {
            Look::Partial(Until::Marker(index)) => self.hold_all(Wait::Marker { at, index }, chunk),
            _ => Fast::Unsure,
        }
    }

    fn text_event<'c>(&mut self, rest: &'c str, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let text = rest.as_bytes();
        if self.machine.ended.is_some() {
            match text {
                [first, ..] if first.is_ascii() && !begins_word(*first) => {
                    self.machine.ended = None;
                }
                _ => return Fast::Unsure,
            }
        }
        match self.machine.text_set().look(text, 0, false) {
            Look::No => match self.plain_event(chunk) {
                Some(event) => Fast::Event(event),
                None => Fast::Unsure,
            },
            Look::Whole {
                len,
                role: Role::BlockStart,
            } => self.header_event(rest, len, chunk),
            Look::Whole {
                len,
                role: Role::EmojiStart(family),
            } => {
                let at = self.position;
                let step = self.machine.emoji_header(rest, at, false, len, family);
                self.event_of(step, chunk)
            }
            look => self.hold_beginning(&look, 0, chunk),
        }
    }

    fn header_event<'c>(&mut self, rest: &str, marker: usize, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let text = rest.as_bytes();
        let Some((content, line)) = self.machine.line_in(text, marker) else {
            return Fast::Unsure;
        };
        let Some(parts) = usual_header(text, marker, content) else {
            return Fast::Unsure;
        };
        let span = Span::new(self.position, self.position + line);
        let step = self.machine.call_start(&parts, span, false);
        self.event_of(step, chunk)
    }

    fn value_event<'c>(&mut self, rest: &'c str, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let text = rest.as_bytes();
        let line_end = match text {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        if line_end == text.len() || text == b"\r" {
            return self.hold_all(Wait::Any, chunk);
        }
        match self.machine.markers.value.look(text, line_end, false) {
            Look::Whole { len, role }
                if (line_end > 0 || self.machine.first_column)
                    && matches!(role, Role::BlockEnd | Role::BlockArgument) =>
            {
                self.machine.state = after_content(role, len, false);
                Fast::Event(self.whole_event(Token::ValueEnd, line_end, chunk))
            }
            look => self.hold_beginning(&look, line_end, chunk),
        }
    }

    fn body_event<'c>(&mut self, rest: &'c str, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let State::Body(family) = self.machine.state else {
            return Fast::Unsure;
        };
        match self.machine.markers.body.look(rest.as_bytes(), 0, false) {
            Look::Whole { len, role } if role == Role::EmojiEnd(family) => {
                self.machine.pin = None;
                self.machine.state = State::EndMarker {
                    len,
                    mid_line: false,
                };
                Fast::Event(self.whole_event(Token::ValueEnd, 0, chunk))
            }
            look => self.hold_beginning(&look, 0, chunk),
        }
    }

    fn pointer_event<'c>(&mut self, rest: &'c str, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let marker = self.machine.markers.arg.len();
        let Some((content, line)) = self.machine.line_in(rest.as_bytes(), marker) else {
            return Fast::Unsure;
        };
        self.machine.state = State::Value;
        self.machine.first_column = true;
        let pointer = trimmed(rest, marker, content);
        Fast::Event(self.whole_event(Token::Argument { pointer }, line, chunk))
    }

    /// A fresh chunk while something is held.
    fn held_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Fast<'c> {
        if chunk.taken > 0 || self.pulled > 0 {
            return Fast::Unsure;
        }
        let text = chunk.text.as_bytes();
        let window = self.held.get(self.held_from..).unwrap_or_default();
        let held = window.len();
        match self.wait {
            Wait::Any if is_line_end(window) && matches!(self.machine.state, State::Value) => {
                if self.is_ended_by(text) {
                    return self.held_content(Content::Value);
                }
                let look = self.machine.markers.value.look(text, 0, false);
                if let Look::Partial(Until::Marker(index)) = look
                    && window != "\r"
                {
                    self.wait = Wait::Marker { at: held, index };
                    return self.absorb(chunk);
                }
                Fast::Unsure
            }
            Wait::Marker { at, index } => {
                let (content, set) = match self.machine.content() {
                    Some((content, set)) => (Some(content), set),
                    None if matches!(self.machine.state, State::Between(_)) => {
                        (None, &self.machine.markers.between)
                    }
                    None => return Fast::Unsure,
                };
                if set.continues(index, held - at, text) {
                    return self.absorb(chunk);
                }
                match content {
                    Some(content)
                        if held - at <= set.clear_len(index) && self.is_ended_by(text) =>
                    {
                        self.held_content(content)
                    }
                    _ => Fast::Unsure,
                }
            }
            Wait::Line { from } => {
                if self.machine.line_scanned != held || held + text.len() > from + LINE_LIMIT {
                    return Fast::Unsure;
                }
                let end = self.machine.markers.line.plain_len(text);
                if end == text.len() {
                    self.machine.line_scanned += end;
                    return self.absorb(chunk);
                }
                if text.get(end) != Some(&b'\n') {
                    return Fast::Unsure;
                }
                self.line_event(from, end + 1, chunk)
            }
            Wait::Bracket { from } => {
                let is_plain = self.machine.bracket_scanned == held
                    && held + text.len() <= from + LINE_LIMIT
                    && !text.iter().any(|byte| matches!(byte, b']' | b'\n'));
                if !is_plain {
                    return Fast::Unsure;
                }
                self.machine.bracket_scanned += text.len();
                self.absorb(chunk)
            }
            Wait::Any => Fast::Unsure,
        }
    }

    /// The chunk leaves what is held undecided.
    fn absorb<'c>(&mut self, chunk: &mut Chunk<'_>) -> Fast<'c> {
        self.hold(chunk.text);
        chunk.taken = chunk.text.len();
        Fast::Done
    }

    /// Whether no marker or escape that begins in what is held can go on with `text`.
    #[inline]
    fn is_ended_by(&self, text: &[u8]) -> bool {
        let is_dull = |byte: &u8| self.machine.markers.is_dull(*byte);
        text.first().is_some_and(is_dull)
    }

    /// All that is held is content.
    fn held_content<'c>(&mut self, content: Content) -> Fast<'c> {
        let window = self.held.get(self.held_from..).unwrap_or_default();
        if window.len() > INLINE {
            return Fast::Unsure;
        }
        self.machine.first_column = window.ends_with('\n');
        let (piece, start) = (Piece::copied(window), self.position);
        self.position += window.len();
        self.machine.consumed(window.len());
        self.held.clear();
        self.held_from = 0;
        Fast::Event(content_event(
            content,
            piece,
            Span::new(start, self.position),
        ))
    }

    /// A held header or pointer line whose line end is the last of the chunk's first `more` bytes.
    fn line_event<'c>(&mut self, from: usize, more: usize, chunk: &mut Chunk<'c>) -> Fast<'c> {
        let state = self.machine.state;
        let marker = match state {
            State::Text | State::Header => self.machine.markers.start.len(),
            State::PointerLine => self.machine.markers.arg.len(),
            _ => return Fast::Unsure,
        };
        if from != marker {
            return Fast::Unsure;
        }
        let end = chunk.text.get(..more).unwrap_or_default();
        self.hold(end);
        self.pulled = more;
        chunk.taken = more;
        let window = self.held.get(self.held_from..).unwrap_or_default();
        let line = window.len();
        let content = line - open_line_end(window.as_bytes(), false);
        let token = if matches!(state, State::PointerLine) {
            self.machine.state = State::Value;
            self.machine.first_column = true;
            Token::Argument {
                pointer: trimmed(window, marker, content),
            }
        } else {
            let Some(parts) = usual_header(window.as_bytes(), marker, content) else {
                return Fast::Unsure;
            };
            let span = Span::new(self.position, self.position + line);
            match self.machine.call_start(&parts, span, false) {
                Step::Whole(token, _) => token,
                _ => return Fast::Unsure,
            }
        };
        Fast::Event(self.whole_event(token, line, chunk))
    }
}

impl Machine {
    /// The content of the present state and the markers that end it, if it is content alone.
    #[inline]
    fn content(&self) -> Option<(Content, &Set)> {
        match self.state {
            State::Value => Some((Content::Value, &self.markers.value)),
            State::Text => Some((Content::Text, self.text_set())),
            State::Body(_) => Some((Content::Value, &self.markers.body)),
            _ => None,
        }
    }

    /// The ends of the line's content, which begins at `from`, and of its line end, if no marker can be on the line.
    fn line_in(&self, text: &[u8], from: usize) -> Option<(usize, usize)> {
        let rest = text.get(from..)?;
        let end = self.markers.line.plain_len(rest);
        if end > LINE_LIMIT || rest.get(end) != Some(&b'\n') {
            return None;
        }
        let is_crlf = end > 0 && rest.get(end - 1) == Some(&b'\r');
        Some((from + end - usize::from(is_crlf), from + end + 1))
    }
}

/// Whether the window is a line end, or a carriage return that may become one.
fn is_line_end(window: &str) -> bool {
    matches!(window, "\n" | "\r\n" | "\r")
}

/// Whether an ASCII letter or digit or `_` stands there.
const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The parts of a header without anything unusual: letters, digits, `_`, `-` and `.`, at most two colons, and behind
/// the second one whatever there is.
fn usual_header(window: &[u8], from: usize, to: usize) -> Option<HeaderParts> {
    let line = window.get(from..to)?;
    if !begins_word(*line.first()?) {
        return None;
    }
    let mut ends = [to, to];
    let mut colons = 0;
    for (byte, at) in line.iter().zip(from..) {
        if *byte == b':' {
            *ends.get_mut(colons)? = at;
            colons += 1;
        } else if colons < 2 && !(begins_word(*byte) || matches!(byte, b'-' | b'.')) {
            return None;
        }
    }
    let [name_end, id_end] = ends;
    Some(HeaderParts {
        name: Part::new(from, name_end),
        id: Part::new(to.min(name_end + 1), id_end),
        dependencies: Part::new(to.min(id_end + 1), to),
        extra_colon: false,
        unusual: false,
    })
}
