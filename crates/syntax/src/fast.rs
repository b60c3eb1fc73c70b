//! The fast path: frequent cases, handled before the exact path.
//!
//! It adds no rules. For the front of the window it returns in one step the result that the state machine
//! reaches in several, or none; everything unusual goes to the exact path in
//! [`parser`](crate::parser), [`machine`](crate::machine), `block.rs` and `emoji.rs`. Without this file the parser
//! would return the same events, more slowly; tests compare both with the oracle ([`Parser::without_fast_path`]).
//!
//! It handles:
//!
//! - content up to the first position where a marker or an escape may begin, directly from the chunk ([`plain_event`]); the
//!   result is cached ([`Plain`]);
//! - with held text: a chunk that leaves it undecided, one whose first byte shows that it is content, one
//!   that completes a marker before a header or pointer, and one that ends such a line ([`held_event`]);
//! - markers and common header and pointer lines that are entirely in the window ([`fast_step`]).
//!
//! [`plain_event`]: Parser::plain_event
//! [`held_event`]: Parser::held_event
//! [`fast_step`]: Machine::fast_step

use crate::LINE_LIMIT;
use crate::block::{after_content, open_line_end, trimmed};
use crate::event::{Event, Syntax};
use crate::machine::{Content, LineClass, Machine, State, Step, Token, Wait};
use crate::markers::{Look, Role, Set, Until};
use crate::parser::{Chunk, Parser, content_event};
use crate::piece::{INLINE, Piece};
use crate::simple_line::{SimpleLine, begins_word};
use crate::span::Span;

/// The known kind of content at the front of the chunk while nothing is held, named by the markers that end it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Plain {
    /// Not known.
    Unknown,
    /// A position where a marker may begin, or in a value the line end before it.
    Candidate,
    Text,
    BlockText,
    EmojiText,
    Value,
    Body,
}

impl Plain {
    #[inline]
    const fn content(self) -> Option<Content> {
        match self {
            Self::Unknown | Self::Candidate => None,
            Self::Text | Self::BlockText | Self::EmojiText => Some(Content::Text),
            Self::Value | Self::Body => Some(Content::Value),
        }
    }
}

impl Parser {
    /// Returns content up to the first position where a marker or an escape may begin; in a value, without the line end before it.
    /// `None` if there is none, or if the state needs the exact path.
    #[allow(
        clippy::inline_always,
        reason = "measured: events of plain content then pass through memory once less"
    )]
    #[inline(always)]
    pub(crate) fn plain_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        let plain = self.plain;
        let content = plain.content()?;
        let rest = chunk.rest;
        let mut len = self.machine.ends_of(plain)?.plain_len(rest.as_bytes());
        if matches!(plain, Plain::Value) {
            // The line end before a marker, or a carriage return that may become one, is not yet part of the value.
            len -= open_line_end(rest.as_bytes().get(..len)?, false);
        }
        if len == 0 {
            return None;
        }
        // Only a value needs this; text before its marker in a line is emitted here, a line end is held.
        self.machine.first_column = false;
        let (text, rest) = rest.split_at_checked(len)?;
        let span = Span::new(self.position, self.position + len);
        self.position += len;
        chunk.rest = rest;
        chunk.is_done = rest.is_empty();
        if !chunk.is_done {
            self.plain = Plain::Candidate;
        }
        Some(content_event(content, Piece::borrowed(text), span))
    }

    /// Without held text: determines whether content comes next, unless that is known. Returns the result.
    #[inline]
    pub(crate) fn learn_plain(&mut self, chunk: &Chunk<'_>) -> bool {
        let Some(first) = chunk.rest.as_bytes().first() else {
            return false;
        };
        if matches!(self.plain, Plain::Unknown)
            && self.is_settled()
            // The cached line length is reduced when content is taken, not here.
            && self.machine.line_scanned | self.machine.bracket_scanned == 0
            && self.machine.settles_end(*first)
        {
            self.plain = self.machine.plain();
        }
        self.plain.content().is_some()
    }

    #[inline]
    fn is_settled(&self) -> bool {
        self.is_fast && self.content_left == 0 && self.machine.is_settled()
    }

    /// With held text: handles a new chunk. `None` if the exact path must decide, or if the chunk is finished.
    #[inline]
    pub(crate) fn held_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        let is_fresh = chunk.taken() == 0 && !chunk.text.is_empty();
        if !is_fresh || !self.is_settled() {
            return None;
        }
        let text = chunk.text.as_bytes();
        let window = self.held.get(self.held_from..)?;
        let held = window.len();
        match self.wait {
            Wait::Any => {
                if !is_line_end(window) || !matches!(self.machine.state, State::Value) {
                    return None;
                }
                if self.is_ended_by(text) {
                    return self.held_content(Content::Value, chunk);
                }
                let look = self.machine.markers.value.look(text, 0, false);
                match look {
                    Look::Partial(Until::Marker(index)) if window != "\r" => {
                        self.wait = Wait::Marker { at: held, index };
                        self.absorb(chunk);
                    }
                    _ => {}
                }
                None
            }
            Wait::Marker { at, index } => {
                let set = self.machine.looked_for()?;
                if set.continues(index, held - at, text) {
                    self.absorb(chunk);
                    return None;
                }
                if at == 0 {
                    if let Some((role, len)) = set.completes(index, held, text) {
                        if self.machine.begins_line(role) {
                            return self.continue_line(len, held, len - held, chunk);
                        }
                    }
                }
                let plain = self.machine.plain();
                let (content, set) = (plain.content()?, self.machine.ends_of(plain)?);
                let is_content = held - at <= set.clear_len(index) && self.is_ended_by(text);
                is_content.then(|| self.held_content(content, chunk))?
            }
            Wait::Line { from } => {
                if self.machine.line_scanned != held {
                    return None;
                }
                self.continue_line(from, held, 0, chunk)
            }
            Wait::Bracket { from } => {
                let is_plain = self.machine.bracket_scanned == held
                    && held + text.len() <= from + LINE_LIMIT
                    && !text.iter().any(|byte| matches!(byte, b']' | b'\n'));
                if is_plain {
                    self.machine.bracket_scanned += text.len();
                    self.absorb(chunk);
                }
                None
            }
        }
    }

    /// Handles a chunk that leaves the held text undecided.
    fn absorb(&mut self, chunk: &mut Chunk<'_>) {
        self.hold(chunk.text);
        chunk.rest = "";
        chunk.is_done = true;
    }

    /// Returns whether no marker or escape that begins in the held text can continue with `text`.
    #[inline]
    fn is_ended_by(&self, text: &[u8]) -> bool {
        let is_unused = |byte: &u8| self.machine.markers.is_unused(*byte);
        text.first().is_some_and(is_unused)
    }

    /// Handles held text that is all content, followed by more of the same content.
    fn held_content<'c>(&mut self, content: Content, chunk: &Chunk<'_>) -> Option<Event<'c>> {
        let window = self.held.get(self.held_from..)?;
        if window.len() > INLINE {
            return None;
        }
        // As in `plain_event`, only a value needs this; no marker begins with the next byte.
        self.machine.first_column = false;
        let (piece, start) = (Piece::copied(window), self.position);
        self.position += window.len();
        self.machine.consumed(window.len());
        self.held.clear();
        self.held_from = 0;
        let span = Span::new(start, self.position);
        self.learn_plain(chunk);
        Some(content_event(content, piece, span))
    }

    /// Continues a header or pointer line with the chunk. `held` bytes of the line are held; its content begins at `from`; the
    /// chunk's first `seen` bytes belong to its marker.
    fn continue_line<'c>(
        &mut self,
        from: usize,
        held: usize,
        seen: usize,
        chunk: &mut Chunk<'c>,
    ) -> Option<Event<'c>> {
        let text = chunk.text.as_bytes();
        if held + text.len() > from + LINE_LIMIT {
            return None;
        }
        let end = seen + self.machine.markers.line.plain_len(text.get(seen..)?);
        if end < text.len() {
            return self.line_event(from, end, chunk);
        }
        self.machine.line_scanned = held + text.len();
        self.wait = Wait::Line { from };
        self.absorb(chunk);
        None
    }

    /// Completes a held header or pointer line if its line end is the byte `at` of the chunk.
    fn line_event<'c>(
        &mut self,
        from: usize,
        at: usize,
        chunk: &mut Chunk<'c>,
    ) -> Option<Event<'c>> {
        let marker = match self.machine.state {
            State::Text | State::Header => self.machine.markers.start.len(),
            State::PointerLine => self.machine.markers.arg.len(),
            _ => return None,
        };
        if from != marker || chunk.text.as_bytes().get(at) != Some(&b'\n') {
            return None;
        }
        self.hold(chunk.take(at + 1));
        self.pulled = at + 1;
        let window = self.held.get(self.held_from..)?;
        match self.machine.line_step(window, marker, self.position)? {
            Step::Whole(token, len) => Some(self.whole_event(token, len, chunk)),
            _ => None,
        }
    }
}

impl Machine {
    /// Returns the result of [`step`](Self::step) before the end of the stream if the window shows it directly.
    #[allow(
        clippy::inline_always,
        reason = "measured: what it finds then does not pass through memory"
    )]
    #[inline(always)]
    pub(crate) fn fast_step(&mut self, window: &str, at: usize) -> Option<Step> {
        let text = window.as_bytes();
        if !self.is_settled() || !self.settles_end(*text.first()?) {
            return None;
        }
        // A line that the exact path has partly searched is not searched again from its beginning.
        let is_fresh = self.line_scanned == 0;
        match self.state {
            State::Value => self.value_step(text),
            State::Text => match self.text_set().look(text, 0, false) {
                Look::Whole {
                    len,
                    role: Role::BlockStart,
                } if is_fresh => self.line_step(window, len, at),
                Look::Whole {
                    len,
                    role: Role::EmojiStart(family),
                } => Some(self.emoji_header(window, at, false, len, family)),
                look => more(&look, 0),
            },
            State::Body(family) => match self.markers.body.look(text, 0, false) {
                Look::Whole { len, role } if role == Role::EmojiEnd(family) => {
                    self.pin = None;
                    self.state = State::EndMarker {
                        len,
                        mid_line: false,
                    };
                    Some(Step::Whole(Token::ValueEnd, 0))
                }
                look => more(&look, 0),
            },
            State::Between(LineClass::Start) if self.pin.is_none() => {
                match self.markers.between.look(text, 0, false) {
                    Look::Whole { len, role } if role != Role::BlockStart => {
                        self.state = after_content(role, len, false);
                        Some(Step::Again)
                    }
                    look => more(&look, 0),
                }
            }
            State::PointerLine if is_fresh => {
                let marker = self.markers.arg.len();
                self.line_step(window, marker, at)
            }
            // It is known to be complete.
            State::Header => {
                let marker = self.markers.start.len();
                self.line_step(window, marker, at)
            }
            State::EndMarker { len, mid_line } => Some(self.end_marker(len, mid_line, at)),
            _ => None,
        }
    }

    /// In a value: a line end and a recognized marker after it, or a possible beginning of them.
    #[allow(
        clippy::inline_always,
        reason = "measured: what it finds then does not pass through memory"
    )]
    #[inline(always)]
    fn value_step(&mut self, text: &[u8]) -> Option<Step> {
        let line_end = match text {
            [b'\n', ..] => 1,
            [b'\r', b'\n', ..] => 2,
            _ => 0,
        };
        if line_end == text.len() || text == b"\r" {
            return Some(Step::More(Wait::Any));
        }
        match self.markers.value.look(text, line_end, false) {
            Look::Whole { len, role }
                if (line_end > 0 || self.first_column)
                    && matches!(role, Role::BlockEnd | Role::BlockArgument) =>
            {
                self.state = after_content(role, len, false);
                Some(Step::Whole(Token::ValueEnd, line_end))
            }
            look => more(&look, line_end),
        }
    }

    /// A header or pointer line at the front of `window`, after a marker of `marker` bytes.
    #[allow(
        clippy::inline_always,
        reason = "measured: what it finds then does not pass through memory"
    )]
    #[inline(always)]
    fn line_step(&mut self, window: &str, marker: usize, at: usize) -> Option<Step> {
        let line = self.line_in(window.as_bytes(), marker)?;
        if matches!(self.state, State::PointerLine) {
            let line = SimpleLine::pointer(line, marker)?;
            self.state = self.value_state();
            self.first_column = true;
            let pointer = trimmed(window, marker, line.content);
            return Some(Step::Whole(Token::Argument { pointer }, line.end));
        }
        let line = SimpleLine::header(line, marker)?;
        let (parts, len) = (line.parts(), line.end);
        // Repeated inline: a returned value would pass through memory.
        let token = Token::CallStart {
            syntax: Syntax::Block,
            name: parts.name,
            id: parts.id,
            rest: parts.dependencies,
        };
        self.call_start(&parts, Span::new(at, at + len), false);
        Some(Step::Whole(token, len))
    }

    /// Returns whether the first byte after an end marker, if one was just read, shows that nothing is attached to it.
    #[inline]
    fn settles_end(&mut self, first: u8) -> bool {
        if self.ended.is_none() {
            return true;
        }
        let is_detached = first.is_ascii() && !begins_word(first);
        if is_detached {
            self.ended = None;
        }
        is_detached
    }

    /// Returns whether the marker of this role at the front of the window is followed by a header or pointer line. The state is
    /// then that of the line.
    fn begins_line(&mut self, role: Role) -> bool {
        match (self.state, role) {
            (State::Text, Role::BlockStart) => true,
            (State::Between(LineClass::Start), Role::BlockArgument) if self.pin.is_none() => {
                self.state = State::PointerLine;
                true
            }
            _ => false,
        }
    }

    /// Returns the markers that are recognized in the current state.
    fn looked_for(&self) -> Option<&Set> {
        match self.state {
            State::Between(_) => Some(&self.markers.between),
            State::PointerRest => Some(&self.markers.line),
            State::Reasoning => Some(&self.markers.reasoning),
            _ => self.ends_of(self.plain()),
        }
    }

    /// Returns the kind of content of the current state, if it has only content.
    #[inline]
    fn plain(&self) -> Plain {
        match (self.state, self.syntax) {
            (State::Value, _) => Plain::Value,
            (State::Text, None) => Plain::Text,
            (State::Text, Some(Syntax::Block)) => Plain::BlockText,
            (State::Text, Some(Syntax::Emoji)) => Plain::EmojiText,
            (State::Body(_), _) => Plain::Body,
            _ => Plain::Unknown,
        }
    }

    /// Returns the markers that end such content.
    #[inline]
    pub(crate) fn ends_of(&self, plain: Plain) -> Option<&Set> {
        match plain {
            Plain::Unknown | Plain::Candidate => None,
            Plain::Text => Some(&self.markers.text),
            Plain::BlockText => Some(&self.markers.block_text),
            Plain::EmojiText => Some(&self.markers.emoji_text),
            Plain::Value => Some(&self.markers.value),
            Plain::Body => Some(&self.markers.body),
        }
    }

    /// Returns the text from `from` up to the line limit, if no marker begins with a byte that is common in lines.
    #[inline]
    fn line_in<'t>(&self, text: &'t [u8], from: usize) -> Option<&'t [u8]> {
        let last = text.len().min(from + LINE_LIMIT + 1);
        let line = text.get(from..last);
        line.filter(|_| self.markers.has_usual_lines)
    }
}

/// Waits for the rest of a marker if only a beginning of one is at `at`.
fn more(look: &Look, at: usize) -> Option<Step> {
    match *look {
        Look::Partial(Until::Marker(index)) => Some(Step::More(Wait::Marker { at, index })),
        _ => None,
    }
}

/// Returns whether the window is a line end, or a carriage return that may become one.
fn is_line_end(window: &str) -> bool {
    matches!(window, "\n" | "\r\n" | "\r")
}

#[cfg(test)]
mod tests {
    use crate::{Dialect, LINE_LIMIT, Parser, ceil_char_boundary};

    const SIZES: [usize; 8] = [1, 2, 3, 4, 7, 16, 64, usize::MAX];

    /// Splits the text into chunks of `size` bytes, or slightly more at character boundaries.
    fn chunks(text: &str, size: usize) -> Vec<&str> {
        let mut chunks = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(ceil_char_boundary(rest, size.min(rest.len())));
            chunks.push(chunk);
            rest = behind;
        }
        chunks
    }

    /// The maximum number of steps, and of steps on the exact path, for chunks of each size. The limits are the measured
    /// counts; a higher count means that something became slower.
    fn check_asked(dialect: &Dialect, text: &str, looks: &str, exact: &str) {
        let limits: Vec<_> = looks.split(' ').zip(exact.split(' ')).collect();
        assert_eq!(limits.len(), SIZES.len());
        for (size, (looks, exact)) in SIZES.into_iter().zip(limits) {
            let mut parser = Parser::new(dialect).expect("the dialect works");
            for chunk in chunks(text, size) {
                parser.feed(chunk).for_each(drop);
            }
            let found = (parser.looks, parser.exact_steps);
            let [looks, exact] = [looks, exact].map(|most| most.parse().expect("a number"));
            assert!(
                found.0 <= looks && found.1 <= exact,
                "{text:?} in chunks of {size}: {found:?}, at most {looks} and {exact}"
            );
        }
    }

    const CALL: &str = "!!!GADGET_START:Write:a-1:b\n!!!ARG:path/to\nsrc/main.rs\n!!!ARG:content\nfn main() {\n    !x\n}\n!!!GADGET_END\n";

    #[test]
    fn common_texts_use_the_fast_path() {
        let (block, emoji, auto) = (Dialect::block(), Dialect::emoji(), Dialect::auto());
        let prose = "Some prose, with a stop! And two !! of them.\n\nMore.\n";
        check_asked(&block, prose, "2 3 1 1 1 0 0 0", "0 1 0 0 0 0 0 0");
        let calls = format!("Let me see.\n{CALL}Done.\n");
        check_asked(&block, &calls, "14 12 12 9 10 8 7 7", "1 1 1 1 2 2 0 0");
        let calls = calls.replace('\n', "\r\n");
        check_asked(&block, &calls, "18 15 15 12 11 7 7 7", "1 1 2 1 2 1 0 0");
        let calls = "!!!GADGET_START:Write\n!!!ARG:path\na\n!!!GADGET_START:Read\n!!!ARG:path\nb\n!!!GADGET_END\n";
        check_asked(&block, calls, "14 14 13 14 11 12 10 10", "3 3 3 4 3 5 3 2");
        for header in ["A", "create-file", "a.b:id_1", "a:", "a::x", "a:b:c, d e"] {
            let call = format!("!!!GADGET_START:{header}\n!!!ARG: a/b~1c \nx\n!!!GADGET_END\n");
            let any = "99 99 99 99 99 99 99 99";
            check_asked(&block, &call, any, "99 99 99 99 99 99 99 0");
        }
        let escaped = block.escaped();
        check_asked(&escaped, CALL, "14 12 12 9 9 7 7 7", "1 1 1 1 2 2 1 0");
        let calls = format!("Let me see.\n{CALL}{CALL}");
        check_asked(&auto, &calls, "30 26 24 21 20 17 14 14", "4 3 2 3 4 2 0 0");

        let body = "🛠️[write a.txt]\nfn main() {\n}\n🛠️[/end]\n";
        let calls = format!("Let me see.\n{body}Done.\n");
        check_asked(&emoji, &calls, "7 7 7 7 7 6 4 4", "1 1 1 1 1 1 1 1");
        let escaped = emoji.escaped();
        check_asked(&escaped, body, "7 7 7 7 7 5 4 4", "1 1 1 1 1 1 1 1");
        let calls = format!("Let me see.\n{body}{body}");
        check_asked(&auto, &calls, "14 14 14 14 14 12 9 8", "2 2 2 2 2 2 2 2");
    }

    #[test]
    fn held_text_is_not_scanned_again() {
        let block = Dialect::block();
        let limit = format!("!!!ARG:{}\n", "a".repeat(LINE_LIMIT));
        let limit = format!("!!!GADGET_START:A\n{limit}v\n!!!GADGET_END\n");
        check_asked(&block, &limit, "8 8 7 8 8 7 6 5", "1 1 1 1 2 3 2 0");
        let limit = format!("🛠️[{}]\n🛠️[/end]", "a".repeat(LINE_LIMIT));
        let emoji = Dialect::emoji();
        check_asked(&emoji, &limit, "7 7 7 7 7 6 5 4", "1 1 1 1 1 1 1 1");
        let near = "!!!GADGET_STORE\n!!!GADGET_START:A\n!!!GADGET_ENTER !!!ARGS\n!!!ARG:p\nx\n!!!GADGET_ENTER\r!!\r\n!!!ARGS\n!!!GADGET_END\n";
        check_asked(&block, near, "31 27 27 22 18 11 9 8", "16 13 14 10 9 7 5 4");
        let near = "!!!!!!GADGET_STAR!!!GADGET_START:A\n!!!ARG:p\n!!!GADGET_EN!!!GADGET_END\n";
        check_asked(&block, near, "19 16 13 14 11 10 8 7", "7 5 5 4 4 3 3 3");
        let rest = format!("!!!ARG:{}!!!GADGET_ENTER\n", "long/".repeat(900));
        let rest = format!("!!!GADGET_START:A\n{rest}v\n!!!GADGET_END\n");
        check_asked(
            &block,
            &rest,
            "418 216 148 113 70 35 14 6",
            "411 209 141 107 64 31 9 2",
        );
        let reasoning = block.clone().reasoning("<think>", "</think>");
        let text = "<think>1 < 2, </ul> and more.</think>Done.\n";
        check_asked(
            &reasoning,
            text,
            "26 17 13 12 7 6 3 3",
            "24 16 12 11 7 6 3 3",
        );
        let near = "!!!GADGET_START:A\n!!!ARG:p\nx\n!!!ARGx\n!!!GADGET_ENx\n";
        check_asked(&block, near, "8 10 10 9 8 8 5 5", "0 2 2 2 0 3 1 1");
        let marker = "<a marker of thirty-three bytes:>";
        let long = block.start(marker);
        let near = format!("{0}.{0}. {0}.", &marker[..31]);
        check_asked(&long, &near, "3 5 4 5 5 5 2 1", "0 2 1 2 2 2 2 1");
    }
}
