//! The states of the block syntax (`spec/block.md`).

use crate::LINE_LIMIT;
use crate::diagnostic::Code;
use crate::dialect::MARKER_LIMIT;
use crate::event::{Part, Syntax, Termination};
use crate::fence::Fences;
use crate::floor_char_boundary;
use crate::is_blank;
use crate::machine::{Content, LineClass, Machine, State, Step, Token, Wait};
use crate::markers::{Found, Role};
use crate::simple_line::HeaderParts;
use crate::span::Span;

/// A line end or marker that begins within the limit of a line ends within this many bytes.
const LINE_WINDOW: usize = LINE_LIMIT + MARKER_LIMIT + 2;
/// The maximum number of blanks between an end marker in mid-line and what must follow it.
const BLANKS_AFTER_END: usize = 16;

/// A header or pointer line, examined from its marker.
enum Line {
    More,
    Whole {
        content: usize,
        end: usize,
        cut: bool,
    },
    TooLong,
    Truncated,
}

/// Whether a marker inside a call is recognized.
enum Counts {
    More(Wait),
    Yes { mid_line: bool },
    No(Code),
}

impl Machine {
    /// `Header`: a recognized start marker with its line.
    pub(crate) fn header(&mut self, window: &str, at: usize, end: bool) -> Step {
        let marker = self.markers.start.len();
        let code = match self.line(window.as_bytes(), marker, end) {
            Line::More => return Step::More(Wait::Line { from: marker }),
            Line::TooLong => Code::HeaderTooLong,
            Line::Truncated => Code::TruncatedHeader,
            Line::Whole { content, end, cut } => match header_parts(window, marker, content) {
                None => Code::NotAHeader,
                Some(parts) => return self.call_start(&parts, Span::new(at, at + end), cut),
            },
        };
        let span = Span::new(at, at + marker);
        self.marker_as_content(Content::Text, code, span, Role::BlockStart, marker)
    }

    pub(crate) fn call_start(&mut self, parts: &HeaderParts, span: Span, cut: bool) -> Step {
        self.syntax = Some(Syntax::Block);
        self.state = State::Between(LineClass::Start);
        self.fenced = false;
        self.pin = None;
        for (code, found) in [
            (Code::UnusualName, parts.unusual),
            (Code::ExtraColon, parts.extra_colon),
            (Code::MissingNewline, cut),
        ] {
            if found {
                self.report(code, span, Role::BlockStart);
            }
        }
        let token = Token::CallStart {
            syntax: Syntax::Block,
            name: parts.name,
            id: parts.id,
            rest: parts.dependencies,
        };
        Step::Whole(token, span.len())
    }

    /// `Between`: after the header, before the first argument. All text here is ignored.
    pub(crate) fn between(&mut self, window: &str, at: usize, end: bool, class: LineClass) -> Step {
        let text = window.as_bytes();
        match self.markers.between.find(text, 0, end) {
            Found::Whole { at: 0, len, role } => {
                let first = class == LineClass::Start;
                match self.counts(window, 0, len, role, first, end) {
                    Counts::More(wait) => Step::More(wait),
                    Counts::Yes { mid_line } => {
                        self.close_between(at, class, role == Role::BlockArgument);
                        self.state = after_content(role, len, mid_line);
                        Step::Again
                    }
                    Counts::No(code) => {
                        self.pin_other(at, class);
                        self.state = State::Between(LineClass::Other);
                        let span = Span::new(at, at + len);
                        self.marker_as_content(Content::Ignored, code, span, role, len)
                    }
                }
            }
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::Partial { at: stop, .. } | Found::Whole { at: stop, .. } => {
                self.classify(text, stop, at, class, true)
            }
            Found::Nothing | Found::EscapePrefix { .. } if !text.is_empty() => {
                self.classify(text, text.len(), at, class, end)
            }
            _ if end => {
                self.close_between(at, class, false);
                self.state = State::CallEnd(Termination::EndOfStream);
                Step::Again
            }
            _ => Step::More(Wait::Any),
        }
    }

    /// Ignores the first `stop` bytes and tracks the kinds of their lines. With `settled`, a CR at the stop is not part of a line end.
    fn classify(
        &mut self,
        text: &[u8],
        stop: usize,
        at: usize,
        mut class: LineClass,
        settled: bool,
    ) -> Step {
        let text = text.get(..stop).unwrap_or_default();
        let mut index = 0;
        while index < stop {
            let byte = text.get(index).copied().unwrap_or_default();
            let begins_line_end = match byte {
                b'\r' => match text.get(index + 1) {
                    Some(next) => *next == b'\n',
                    None if settled => false,
                    None => {
                        self.state = State::Between(class);
                        return if index == 0 {
                            Step::More(Wait::Any)
                        } else {
                            Step::Emit(Content::Ignored, index)
                        };
                    }
                },
                _ => false,
            };
            class = match (class, byte) {
                (class, b'\n') => {
                    self.settle_fence(at + index, class);
                    LineClass::Start
                }
                (class, b'\r') if begins_line_end => {
                    self.settle_fence(at + index, class);
                    LineClass::Blank
                }
                (LineClass::Start | LineClass::Blank, b' ' | b'\t') => LineClass::Blank,
                (LineClass::Start | LineClass::Blank, b'`' | b'~') => LineClass::Fence(byte, 1),
                (LineClass::Fence(fence, 2), _) if fence == byte && !self.fenced => {
                    self.fenced = true;
                    self.state = State::Between(LineClass::FenceRest);
                    let close = at + index + 1;
                    self.report(
                        Code::FenceBeforeArgument,
                        Span::new(close - 3, close),
                        Role::BlockStart,
                    );
                    return Step::Emit(Content::Ignored, index + 1);
                }
                (LineClass::Fence(fence, 1), _) if fence == byte => LineClass::Fence(fence, 2),
                (LineClass::FenceRest | LineClass::Other, _) => {
                    // The rest of the line adds no diagnostic.
                    let rest = text.get(index + 1..).unwrap_or_default();
                    index += memchr::memchr2(b'\n', b'\r', rest).unwrap_or(rest.len());
                    class
                }
                (class, _) => {
                    self.pin_other(at + index, class);
                    LineClass::Other
                }
            };
            index += 1;
        }
        self.state = State::Between(class);
        Step::Emit(Content::Ignored, stop)
    }

    /// Records the position of the first text that is neither blank nor a fence line.
    fn pin_other(&mut self, at: usize, class: LineClass) {
        let begun = match class {
            LineClass::Fence(_, count) => count,
            _ => 0,
        };
        self.pin.get_or_insert(at - begun);
    }

    /// An incomplete fence at the end of a line is other text.
    fn settle_fence(&mut self, at: usize, class: LineClass) {
        if matches!(class, LineClass::Fence(..)) {
            self.pin_other(at, class);
        }
    }

    fn close_between(&mut self, at: usize, class: LineClass, argument: bool) {
        self.settle_fence(at, class);
        if let Some(start) = self.pin.take() {
            let code = if argument {
                Code::TextBeforeArgument
            } else {
                Code::TextWithoutArgument
            };
            self.report(code, Span::new(start, at), Role::BlockArgument);
        }
    }

    /// `PointerLine`: a recognized argument marker with its line.
    pub(crate) fn pointer_line(&mut self, window: &str, at: usize, end: bool) -> Step {
        let marker = self.markers.arg.len();
        let (content, len, code) = match self.line(window.as_bytes(), marker, end) {
            Line::More => return Step::More(Wait::Line { from: marker }),
            Line::Whole { content, end, cut } => {
                (content, end, cut.then_some(Code::MissingNewline))
            }
            Line::Truncated => (window.len(), window.len(), Some(Code::TruncatedPointer)),
            Line::TooLong => {
                let len = floor_char_boundary(window, marker + LINE_LIMIT);
                (len, len, Some(Code::PointerTooLong))
            }
        };
        self.state = if code == Some(Code::PointerTooLong) {
            State::PointerRest
        } else {
            self.value_state()
        };
        self.first_column = true;
        if let Some(code) = code {
            self.report(code, Span::new(at, at + len), Role::BlockArgument);
        }
        let pointer = trimmed(window, marker, content);
        Step::Whole(Token::Argument { pointer }, len)
    }

    /// `PointerRest`: the rest of a pointer line that is too long, up to its line end or a marker.
    pub(crate) fn pointer_rest(&mut self, window: &str, end: bool) -> Step {
        match self.markers.line.find(window.as_bytes(), 0, end) {
            Found::Partial { at: 0, until } => Step::More(Wait::marker(0, until)),
            Found::Whole {
                at,
                role: Role::LineEnd,
                ..
            } => {
                self.state = self.value_state();
                Step::Emit(Content::Ignored, at + 1)
            }
            Found::Whole { at: 0, .. } => {
                self.state = self.value_state();
                Step::Again
            }
            Found::Partial { at, .. } | Found::Whole { at, .. } => Step::Emit(Content::Ignored, at),
            Found::Nothing | Found::EscapePrefix { .. } if !window.is_empty() => {
                Step::Emit(Content::Ignored, window.len())
            }
            _ if end => {
                self.state = self.value_state();
                Step::Again
            }
            _ => Step::More(Wait::Any),
        }
    }

    /// Returns the state of a value that begins.
    #[inline]
    pub(crate) fn value_state(&mut self) -> State {
        if !self.fenced {
            return State::Value;
        }
        self.fences = Fences::default();
        State::FencedValue
    }

    /// `FencedValue`: as `Value`. A bare fence that closes nothing in the last value is not part of it.
    pub(crate) fn fenced_value(&mut self, window: &str, at: usize, end: bool) -> Step {
        let step = self.value(window, at, end);
        if let Step::Emit(Content::Value, len) = step {
            let emitted = window.as_bytes().get(..len).unwrap_or_default();
            for byte in emitted {
                self.fences.take(*byte);
            }
        }
        step
    }

    /// Returns where the fence line that ends a value begins, or may begin, if the value ends at `stop`.
    fn fence_before(&self, text: &[u8], stop: usize, found: &Found, end: bool) -> Option<usize> {
        if !matches!(self.state, State::FencedValue) {
            return None;
        }
        let is_open = match found {
            Found::Whole {
                role: Role::BlockArgument,
                ..
            } => return None,
            Found::Whole { .. } => false,
            _ => !end,
        };
        self.fences.last_line(text.get(..stop)?, is_open)
    }

    /// `LastFence`: the fence line after the last value.
    pub(crate) fn last_fence(&mut self, len: usize, ended_by: Option<(Role, usize, bool)>) -> Step {
        self.state = match ended_by {
            Some((role, len, mid_line)) => after_content(role, len, mid_line),
            None => State::CallEnd(Termination::EndOfStream),
        };
        Step::Emit(Content::Ignored, len)
    }

    /// `Value`: everything up to the marker that ends it, without one line end.
    pub(crate) fn value(&mut self, window: &str, at: usize, end: bool) -> Step {
        if let Some(step) = self.backslashes(
            |machine| &machine.markers.value,
            Content::Value,
            window,
            end,
        ) {
            return step;
        }
        let text = window.as_bytes();
        let found = self.markers.value.find(text, 0, end);
        let (stop, held) = match found {
            Found::EscapePrefix { end: len, prefix } => {
                return self.arm(Content::Value, prefix, len);
            }
            Found::Nothing => (text.len(), open_line_end(text, end)),
            Found::Partial { at: stop, .. } | Found::Whole { at: stop, .. } => {
                (stop, line_end_before(text, stop))
            }
        };
        let fence = self.fence_before(text, stop, &found, end);
        let held = fence.map_or(held, |fence| stop - fence + line_end_before(text, fence));
        let sure = stop - held;
        if sure > 0 {
            // A line end directly before a marker is held.
            self.first_column = false;
            return Step::Emit(Content::Value, sure);
        }
        let Found::Whole { len, role, .. } = found else {
            if !end {
                return Step::More(Wait::Any);
            }
            return self.end_value(stop, fence.unwrap_or(stop), None);
        };
        let first = line_end_before(text, stop) > 0 || (stop == 0 && self.first_column);
        match self.counts(window, stop, len, role, first, end) {
            Counts::More(wait) => Step::More(wait),
            Counts::Yes { mid_line } => {
                let ended_by = Some((role, len, mid_line));
                self.end_value(stop, fence.unwrap_or(stop), ended_by)
            }
            Counts::No(code) => {
                let span = Span::new(at + stop, at + stop + len);
                self.marker_as_content(Content::Value, code, span, role, stop + len)
            }
        }
    }

    /// Ends a value at `stop`. Only its line end, and the fence line from `fence` on, are before it.
    fn end_value(
        &mut self,
        stop: usize,
        fence: usize,
        ended_by: Option<(Role, usize, bool)>,
    ) -> Step {
        let len = stop - fence;
        if len > 0 {
            self.state = State::LastFence { len, ended_by };
        } else {
            self.last_fence(0, ended_by);
        }
        Step::Whole(Token::ValueEnd, fence)
    }

    /// Returns whether the marker of `len` bytes at `stop` is recognized inside a call.
    fn counts(
        &mut self,
        window: &str,
        stop: usize,
        len: usize,
        role: Role,
        first: bool,
        end: bool,
    ) -> Counts {
        let in_place = Counts::Yes { mid_line: false };
        let elsewhere = Counts::No(Code::MarkerInValue);
        let placed = first || self.anywhere;
        let behind = stop + len;
        match role {
            Role::BlockStart if placed => match self.line(window.as_bytes(), behind, end) {
                Line::More => Counts::More(Wait::Line { from: behind }),
                Line::TooLong => Counts::No(Code::HeaderTooLong),
                Line::Truncated => Counts::No(Code::TruncatedHeader),
                Line::Whole { content, .. } => match header_parts(window, behind, content) {
                    Some(_) => in_place,
                    None => Counts::No(Code::NotAHeader),
                },
            },
            Role::BlockArgument | Role::BlockEnd if placed => in_place,
            Role::BlockEnd => match self.ends_mid_line(window.as_bytes(), behind, end) {
                None => Counts::More(Wait::Any),
                Some(true) => Counts::Yes { mid_line: true },
                Some(false) => elsewhere,
            },
            _ => elsewhere,
        }
    }

    /// Returns whether `after` is followed only by blanks and then a line end, a start marker or the end of the stream; `None` if
    /// this needs more text.
    fn ends_mid_line(&self, text: &[u8], after: usize, end: bool) -> Option<bool> {
        let rest = text.get(after..).unwrap_or_default();
        let blanks = rest
            .iter()
            .take_while(|byte| matches!(byte, b' ' | b'\t'))
            .take(BLANKS_AFTER_END)
            .count();
        // With one more blank, nothing would end the line.
        let line_end = match (rest.get(blanks), rest.get(blanks + 1)) {
            (None, _) => end.then_some(true),
            (Some(b'\n'), _) | (Some(b'\r'), Some(b'\n')) => Some(true),
            (Some(b'\r'), None) => end.then_some(false),
            _ => Some(false),
        };
        // A custom start marker may begin with blanks.
        let places = after..=after + blanks;
        let start = |at| self.markers.between.is_at(text, at, Role::BlockStart, end);
        places
            .map(start)
            .fold(line_end, |known, found| match (known, found) {
                (Some(true), _) | (_, Some(true)) => Some(true),
                (Some(false), Some(false)) => Some(false),
                _ => None,
            })
    }

    /// Finds the end of the header or pointer line whose content begins at `from`.
    fn line(&mut self, text: &[u8], from: usize, end: bool) -> Line {
        let bound = from + LINE_WINDOW;
        let seen = text.get(..bound.min(text.len())).unwrap_or_default();
        let scan_from = self.line_scanned.max(from);
        let (content, close, cut) = match self.markers.line.find(seen, scan_from, end) {
            Found::Whole {
                at,
                role: Role::LineEnd,
                ..
            } => {
                // The last character of a marker is never a carriage return.
                let is_crlf = matches!(seen.get(..at), Some([.., b'\r']));
                (at - usize::from(is_crlf), at + 1, false)
            }
            Found::Whole { at, .. } => (at, at, true),
            found => {
                self.line_scanned = match found {
                    Found::Partial { at, .. } => at,
                    _ => seen.len(),
                };
                let is_over = seen.len().saturating_sub(from) > LINE_LIMIT;
                return if seen.len() == bound || (end && is_over) {
                    Line::TooLong
                } else if end {
                    Line::Truncated
                } else {
                    Line::More
                };
            }
        };
        // Cached, so that the line is not searched again when it is read.
        self.line_scanned = close - usize::from(!cut);
        if content - from > LINE_LIMIT {
            Line::TooLong
        } else {
            Line::Whole {
                content,
                end: close,
                cut,
            }
        }
    }
}

/// Returns the state after the marker that ends a value, or before the first value.
pub(crate) fn after_content(role: Role, len: usize, mid_line: bool) -> State {
    match role {
        Role::BlockArgument => State::PointerLine,
        Role::BlockStart => State::CallEnd(Termination::NextCall),
        _ => State::EndMarker { len, mid_line },
    }
}

/// ```text
/// header = name , [ ":" , [ id ] , { ":" , dependency , { "," , dependency } } ] ;   (* all trimmed *)
/// name   = ( letter | digit | "_" ) , { any - blank - control - quote - backtick - ":" } ;
/// ```
pub(crate) fn header_parts(window: &str, from: usize, to: usize) -> Option<HeaderParts> {
    let line = window.as_bytes().get(from..to)?;
    let mut colons = line.iter().zip(from..).filter(|(byte, _)| **byte == b':');
    let mut colon = || colons.next().map(|(_, at)| at);
    let (name_end, id_end, extra) = (colon(), colon(), colon());
    let name_end = name_end.unwrap_or(to);
    let id_end = id_end.unwrap_or(to);
    let name = trimmed(window, from, name_end);
    let id = trimmed(window, to.min(name_end + 1), id_end);
    let unusual_name = is_unusual(name.of(window));
    if !is_name(name.of(window), unusual_name) {
        return None;
    }
    Some(HeaderParts {
        name,
        id,
        dependencies: Part::new(to.min(id_end + 1), to),
        extra_colon: extra.is_some(),
        unusual: unusual_name || is_unusual(id.of(window)),
    })
}

/// Common texts contain no character that names exclude.
fn is_name(text: &str, is_unusual: bool) -> bool {
    text.starts_with(begins_name) && !(is_unusual && text.contains(is_refused_in_name))
}

/// Returns whether a name may begin with this character.
pub(crate) fn begins_name(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Returns whether names exclude this character.
pub(crate) fn is_refused_in_name(c: char) -> bool {
    is_blank(c) || c.is_control() || matches!(c, '"' | '\'' | '`')
}

/// Returns whether a name or id contains a character that few tools accept.
fn is_unusual(text: &str) -> bool {
    let is_usual = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    !text.bytes().all(is_usual)
}

/// Returns the part from `from` to `to` without blanks at both ends.
pub(crate) fn trimmed(window: &str, from: usize, to: usize) -> Part {
    let is_blank_at = |at: usize| matches!(window.as_bytes().get(at), Some(b' ' | b'\t'));
    let (mut start, mut end) = (from, to);
    while start < end && is_blank_at(start) {
        start += 1;
    }
    while end > start && is_blank_at(end - 1) {
        end -= 1;
    }
    Part::new(start, end)
}

/// Returns the length of the line end directly before `at`.
fn line_end_before(text: &[u8], at: usize) -> usize {
    match text.get(..at) {
        Some([.., b'\r', b'\n']) => 2,
        Some([.., b'\n']) => 1,
        _ => 0,
    }
}

/// Returns the length of the line end at the end of the text. A carriage return may become one unless the stream has ended.
pub(crate) fn open_line_end(text: &[u8], end: bool) -> usize {
    match text {
        [.., b'\r'] if !end => 1,
        _ => line_end_before(text, text.len()),
    }
}
