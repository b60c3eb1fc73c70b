//! The streaming parser: chunks in, events out.
//!
//! Text that is undecided at the end of a chunk is *held*: appended to a buffer. While text is held, the
//! machine's window is the held text with as much of the chunk after it as needed; as soon as the
//! rest of it is entirely in the chunk, the window is the chunk again, and events borrow from it.
//!
//! This is the exact path, which is complete without the fast path ([`fast`](crate::fast)).

use crate::LINE_LIMIT;
use crate::dialect::{Dialect, DialectError};
use crate::event::{Ending, Event, EventKind, Header, Pointer, Slot, Syntax};
use crate::fast::Plain;
use crate::machine::{Content, Machine, State, Step, Token, Wait};
use crate::piece::{INLINE, Piece};
use crate::span::Span;
use crate::{ceil_char_boundary, floor_char_boundary};

/// The number of bytes of a chunk that are appended to held text at a time.
const PULL: usize = 64;

/// The capacity for held text, in bytes: a line at its limit and a few markers, with a reserve so that it is seldom moved.
const ROOM: usize = LINE_LIMIT + 1024;

/// A streaming parser for one document: one reply of a model (`spec/common.md` 2, `spec/block.md`, `spec/emoji.md`).
///
/// It never fails and never loses text: for any input, the spans of its events cover the input. Splitting the input
/// into different chunks changes only where text events are split.
///
/// ```
/// use plaincall_syntax::{Dialect, EventKind, Parser};
///
/// let mut parser = Parser::new(&Dialect::block())?;
/// let mut names = Vec::new();
/// for chunk in ["Let me look.\n!!!GADGET_ST", "ART:ReadFile\n!!!ARG:path\nsrc/main.rs\n!!!GADGET_END\n"] {
///     for event in parser.feed(chunk) {
///         if let EventKind::CallStart(header) = event.kind {
///             names.push(header.name().to_owned());
///         }
///     }
/// }
/// assert_eq!(parser.finish().count(), 0);
/// assert_eq!(names, ["ReadFile"]);
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Parser {
    pub(crate) machine: Machine,
    /// The position of the window in the input.
    pub(crate) position: usize,
    /// The length of all chunks so far, in bytes: between chunks, the position where held text ends.
    given: usize,
    /// The held text begins at `held_from`; empty if nothing is held.
    pub(crate) held: String,
    pub(crate) held_from: usize,
    /// The number of bytes at the end of `held` that are also in the current chunk.
    pub(crate) pulled: usize,
    /// The input that the machine waits for, if text is held.
    pub(crate) wait: Wait,
    /// Content that is decided but not returned yet.
    content: Content,
    pub(crate) content_left: usize,
    /// Whether the fast path is used.
    pub(crate) is_fast: bool,
    /// The known kind of what comes next.
    pub(crate) plain: Plain,
    /// The number of steps on both paths.
    #[cfg(test)]
    pub(crate) looks: usize,
    /// The number of steps on the exact path.
    #[cfg(test)]
    pub(crate) exact_steps: usize,
}

/// The current chunk, and how much of it has been consumed.
#[derive(Debug)]
pub(crate) struct Chunk<'c> {
    pub(crate) text: &'c str,
    /// The rest that has not been consumed: a suffix of `text`.
    pub(crate) rest: &'c str,
    /// Whether the stream ends after it.
    end: bool,
    /// Whether all its events have been returned.
    pub(crate) is_done: bool,
}

impl<'c> Chunk<'c> {
    pub(crate) const fn new(text: &'c str) -> Self {
        Self {
            text,
            rest: text,
            end: false,
            is_done: false,
        }
    }

    /// A finished chunk.
    pub(crate) const fn done() -> Self {
        // Assigned step by step: a field in a literal could not be excluded from mutation testing, where it would only be
        // slower.
        let mut chunk = Self::new("");
        chunk.is_done = true;
        chunk
    }

    pub(crate) const fn end() -> Self {
        Self {
            end: true,
            ..Self::new("")
        }
    }

    /// Consumes the next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> &'c str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        self.rest = rest;
        taken
    }

    /// Returns the last `len` consumed bytes to the rest.
    fn give_back(&mut self, len: usize) {
        self.rest = self.text.get(self.taken() - len..).unwrap_or_default();
    }

    /// Returns the number of consumed bytes.
    #[inline]
    pub(crate) const fn taken(&self) -> usize {
        self.text.len() - self.rest.len()
    }
}

impl Parser {
    /// Creates a parser for `dialect`.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid, for example if two markers are equal.
    pub fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            machine: Machine::new(dialect)?,
            position: 0,
            given: 0,
            held: String::new(),
            held_from: 0,
            pulled: 0,
            wait: Wait::Any,
            content: Content::Text,
            content_left: 0,
            is_fast: true,
            plain: Plain::Unknown,
            #[cfg(test)]
            looks: 0,
            #[cfg(test)]
            exact_steps: 0,
        })
    }

    /// Turns off the fast path: the events stay the same, and parsing is slower. Useful for testing.
    pub fn without_fast_path(mut self) -> Self {
        self.is_fast = false;
        self.plain = Plain::Unknown;
        self
    }

    /// Parses the next chunk and returns the events it completes.
    ///
    /// The events borrow from the chunk, not from the parser. `for_each` and `fold` are the fastest ways to consume them. Dropping the
    /// iterator early loses the events that were not consumed, but nothing else: the rest of the chunk is still parsed.
    pub fn feed<'p, 'c>(&'p mut self, chunk: &'c str) -> Events<'p, 'c> {
        self.begin_chunk(chunk.len());
        Events {
            parser: self,
            chunk: Chunk::new(chunk),
        }
    }

    /// Ends the stream and returns the last events.
    pub fn finish(mut self) -> std::vec::IntoIter<Event<'static>> {
        self.begin_chunk(0);
        let mut chunk = Chunk::end();
        let events: Vec<_> = std::iter::from_fn(|| self.next(&mut chunk)).collect();
        events.into_iter()
    }

    /// Returns the syntax of the document: that of the dialect, or for an automatic dialect that of the first call, once
    /// there is one.
    pub const fn syntax(&self) -> Option<Syntax> {
        self.machine.syntax
    }

    /// Returns whether the text so far ends inside reasoning.
    pub const fn is_in_reasoning(&self) -> bool {
        matches!(self.machine.state, State::Reasoning)
    }

    /// Returns the position in the input, in bytes, up to which events have been returned.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// Returns the earliest position at which a later diagnostic may begin, if it is before the held text.
    pub(crate) const fn pinned(&self) -> Option<usize> {
        self.machine.pin
    }

    /// Returns the next event, or `None` at the end of the chunk (at the end of the stream: when all events are returned).
    #[allow(
        clippy::inline_always,
        reason = "measured: events of plain content then pass through memory once less"
    )]
    #[inline(always)]
    pub(crate) fn next<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        if chunk.is_done {
            return None;
        }
        match self.plain_event(chunk) {
            Some(event) => Some(event),
            None => self.next_out_of_line(chunk),
        }
    }

    /// Returns the next event, after the caller has tried [`plain_event`](Self::plain_event).
    #[inline(never)]
    fn next_out_of_line<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        if self.is_held() {
            if let Some(event) = self.held_event(chunk) {
                return Some(event);
            }
            if chunk.is_done {
                return None;
            }
        } else if self.learn_plain(chunk) {
            if let Some(event) = self.plain_event(chunk) {
                return Some(event);
            }
        }
        self.plain = Plain::Unknown;
        let event = self.next_event(chunk);
        if event.is_none() {
            chunk.is_done = true;
        }
        event
    }

    /// Returns the next event on the exact path.
    #[inline]
    fn next_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
        loop {
            if self.content_left > 0 {
                return Some(self.content_event(chunk));
            }
            if let Some(diagnostic) = self.machine.take_pending() {
                return Some(Event {
                    span: diagnostic.span,
                    kind: EventKind::Diagnostic(diagnostic),
                });
            }
            let is_held = self.is_held();
            // Held text was undecided without the chunk; it is examined again only with more of it.
            if is_held && self.pulled == 0 && !chunk.end && !self.pull(chunk) {
                return None;
            }
            let window = if is_held {
                self.held.get(self.held_from..).unwrap_or_default()
            } else {
                chunk.rest
            };
            if window.is_empty() && !chunk.end && !self.machine.is_due() {
                return None;
            }
            #[cfg(test)]
            {
                self.looks += 1;
            }
            let fast = if self.is_fast && !chunk.end {
                self.machine.fast_step(window, self.position)
            } else {
                None
            };
            let step = match fast {
                // Separate from events of held text, so that this event is constructed where it is returned.
                Some(Step::Whole(token, len)) if !is_held => {
                    let source = chunk.rest.get(..len).unwrap_or_default();
                    let span = self.consume_chunk(len, chunk);
                    return Some(whole_event(token, Piece::borrowed(source), span));
                }
                Some(step) => step,
                None => {
                    #[cfg(test)]
                    {
                        self.exact_steps += 1;
                    }
                    self.machine.step(window, self.position, chunk.end)
                }
            };
            match step {
                Step::Again => {}
                Step::Emit(content, len) => {
                    self.content = content;
                    self.content_left = len;
                }
                Step::Whole(token, len) => return Some(self.whole_event(token, len, chunk)),
                Step::Done => return None,
                Step::More(wait) => {
                    self.wait = wait;
                    if !is_held {
                        self.hold_rest(chunk);
                        return None;
                    }
                    if !self.pull(chunk) {
                        return None;
                    }
                }
            }
        }
    }

    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        self.held_from < self.held.len()
    }

    /// Appends more of the chunk to the held text. Returns whether there was more.
    fn pull(&mut self, chunk: &mut Chunk<'_>) -> bool {
        let rest = chunk.rest;
        let more = if rest.len() <= PULL {
            rest
        } else {
            rest.get(..ceil_char_boundary(rest, PULL))
                .unwrap_or_default()
        };
        if more.is_empty() {
            return false;
        }
        self.hold(more);
        self.pulled += more.len();
        chunk.take(more.len());
        true
    }

    /// Appends `more` to the held text.
    pub(crate) fn hold(&mut self, more: &str) {
        let wanted = self.held.len() + more.len();
        if wanted > self.held.capacity() {
            if self.held_from > self.held.len() / 2 || wanted > ROOM {
                self.held.drain(..self.held_from);
                self.held_from = 0;
            }
            let wanted = self.held.len() + more.len();
            let room = (2 * wanted).clamp(PULL, wanted.max(ROOM));
            self.held.reserve_exact(room - self.held.len());
        }
        self.held.push_str(more);
    }

    /// Holds the rest of the chunk, which is undecided.
    fn hold_rest(&mut self, chunk: &mut Chunk<'_>) {
        let rest = chunk.rest;
        self.held.clear();
        self.held_from = 0;
        self.hold(rest);
        self.pulled = rest.len();
        chunk.rest = "";
    }

    /// Returns the next piece of decided content.
    fn content_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Event<'c> {
        let piece = if self.is_held() {
            let window = self.held.get(self.held_from..).unwrap_or_default();
            // The part that is also in the chunk is borrowed from there.
            let own = window.len() - self.pulled;
            // At the end, one piece takes less space than many.
            let most = if chunk.end { own } else { own.min(INLINE) };
            let len = floor_char_boundary(window, self.content_left.min(most));
            Piece::copied(window.get(..len).unwrap_or_default())
        } else {
            Piece::borrowed(chunk.rest.get(..self.content_left).unwrap_or_default())
        };
        let span = self.consume(piece.len(), chunk);
        self.content_left -= span.len();
        content_event(self.content, piece, span)
    }

    pub(crate) fn whole_event<'c>(
        &mut self,
        token: Token,
        len: usize,
        chunk: &mut Chunk<'c>,
    ) -> Event<'c> {
        let source = self.line(len, chunk);
        whole_event(token, source, self.consume(len, chunk))
    }

    /// Returns the header line, pointer line or marker of `len` bytes at the front of the window.
    #[inline]
    fn line<'c>(&self, len: usize, chunk: &Chunk<'c>) -> Piece<'c> {
        if self.is_held() {
            let window = self.held.get(self.held_from..).unwrap_or_default();
            Piece::copied(window.get(..len).unwrap_or_default())
        } else {
            Piece::borrowed(chunk.rest.get(..len).unwrap_or_default())
        }
    }

    /// Advances the window by `len` bytes and returns their span.
    #[inline]
    fn consume(&mut self, len: usize, chunk: &mut Chunk<'_>) -> Span {
        let start = self.position;
        self.position += len;
        self.machine.consumed(len);
        if self.is_held() {
            self.held_from += len;
            let left = self.held.len() - self.held_from;
            if left <= self.pulled {
                // The rest is entirely in the chunk: continue there.
                chunk.give_back(left);
                self.held.clear();
                self.held_from = 0;
                self.pulled = 0;
            } else {
                // The wait belonged to the previous front.
                self.wait = Wait::Any;
            }
        } else {
            chunk.take(len);
        }
        Span::new(start, self.position)
    }

    /// Advances the window while nothing is held.
    #[inline]
    pub(crate) fn consume_chunk(&mut self, len: usize, chunk: &mut Chunk<'_>) -> Span {
        let start = self.position;
        self.position += len;
        self.machine.consumed(len);
        chunk.take(len);
        Span::new(start, self.position)
    }

    /// Begins a chunk of `len` bytes. Held text is no longer part of any chunk.
    #[inline]
    pub(crate) fn begin_chunk(&mut self, len: usize) {
        if self.position + self.held.len() - self.held_from != self.given {
            self.give_chunk_up();
        }
        self.given += len;
        self.pulled = 0;
    }

    /// Recovers if the last chunk's iterator was leaked (`mem::forget`), since the state refers to lost
    /// text. Parsing continues as text outside calls, at the correct position.
    #[cold]
    fn give_chunk_up(&mut self) {
        self.machine.restart();
        self.position = self.given;
        self.held.clear();
        self.held_from = 0;
        self.content_left = 0;
        self.plain = Plain::Unknown;
    }
}

/// The events of one chunk. See [`Parser::feed`].
#[derive(Debug)]
#[must_use = "the events of a chunk are lost with it"]
pub struct Events<'p, 'c> {
    parser: &'p mut Parser,
    chunk: Chunk<'c>,
}

impl<'c> Iterator for Events<'_, 'c> {
    type Item = Event<'c>;

    #[allow(
        clippy::inline_always,
        reason = "measured: events of plain content then pass through memory once less"
    )]
    #[inline(always)]
    fn next(&mut self) -> Option<Event<'c>> {
        self.parser.next(&mut self.chunk)
    }

    // Separate from `next`, so that an event of plain content is constructed where `f` receives it: its kind is known there,
    // and the two sources of events do not meet in memory.
    #[inline]
    fn fold<B, F>(mut self, init: B, mut f: F) -> B
    where
        F: FnMut(B, Event<'c>) -> B,
    {
        let Self { parser, chunk } = &mut self;
        let mut accumulated = init;
        while !chunk.is_done {
            accumulated = match parser.plain_event(chunk) {
                Some(event) => f(accumulated, event),
                None => match parser.next_out_of_line(chunk) {
                    Some(event) => f(accumulated, event),
                    None => break,
                },
            };
        }
        accumulated
    }
}

impl std::iter::FusedIterator for Events<'_, '_> {}

#[inline]
pub(crate) fn content_event(content: Content, piece: Piece<'_>, span: Span) -> Event<'_> {
    let kind = match content {
        Content::Text => EventKind::Text(piece),
        Content::Reasoning => EventKind::Reasoning(piece),
        Content::Value => EventKind::ValueDelta(piece),
        Content::Ignored => EventKind::Ignored(piece),
    };
    Event { kind, span }
}

/// Constructs an event that is emitted in one piece, with its source text.
#[allow(
    clippy::inline_always,
    reason = "measured: an event then passes through memory once less"
)]
#[inline(always)]
fn whole_event(token: Token, source: Piece<'_>, span: Span) -> Event<'_> {
    let event = |kind| Event { kind, span };
    match token {
        Token::CallStart {
            syntax,
            name,
            id,
            rest,
        } => event(EventKind::CallStart(Header {
            source,
            syntax,
            name,
            id,
            rest,
        })),
        Token::Argument { pointer } => event(EventKind::ValueStart(Slot::Argument(Pointer {
            source,
            pointer,
        }))),
        Token::BodyStart => event(EventKind::ValueStart(Slot::Body)),
        Token::ValueEnd => event(EventKind::ValueEnd),
        Token::CallEnd(termination) => event(EventKind::CallEnd(Ending {
            termination,
            marker: source,
        })),
    }
}

impl Drop for Events<'_, '_> {
    #[inline]
    fn drop(&mut self) {
        while !self.chunk.is_done {
            self.parser.next_out_of_line(&mut self.chunk);
        }
    }
}

/// Returns the events of a complete text (`spec/common.md` 2), as [`Parser::feed`] and [`Parser::finish`] do for one
/// chunk.
///
/// ```
/// use plaincall_syntax::{Dialect, EventKind, parse};
///
/// let events = parse("🛠️[create-file a.txt]\nhello\n🛠️[/end]", &Dialect::emoji())?;
/// assert!(matches!(&events[2].kind, EventKind::ValueDelta(body) if body == "hello\n"));
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
///
/// # Errors
/// Returns an error if the dialect is invalid.
pub fn parse<'t>(text: &'t str, dialect: &Dialect) -> Result<Vec<Event<'t>>, DialectError> {
    let mut parser = Parser::new(dialect)?;
    let mut events: Vec<Event<'t>> = parser.feed(text).collect();
    events.extend(parser.finish());
    Ok(events)
}

#[cfg(test)]
mod tests {
    use super::{LINE_LIMIT, PULL, Parser, ROOM};
    use crate::Dialect;

    /// Returns the used capacity in bytes, and how often the window was moved to its front, after 10,000 pieces of `piece`
    /// bytes of which the last `window` bytes are held.
    fn check_room(window: usize, piece: usize, room: usize, moves: usize) {
        let mut parser = Parser::new(&Dialect::block()).expect("the dialect works");
        let text = "x".repeat(piece);
        let mut found = 0;
        for _ in 0..10_000 {
            let before = parser.held_from;
            parser.hold(&text);
            found += usize::from(parser.held_from < before);
            parser.held_from = parser.held.len().saturating_sub(window);
        }
        assert_eq!(
            (parser.held.capacity(), found),
            (room, moves),
            "{window}, {piece}"
        );
    }

    #[test]
    fn held_text_is_small_and_rarely_moved() {
        check_room(10, 1, 64, 184);
        check_room(10, 40, 100, 4999);
        check_room(500, 7, 1218, 97);
        check_room(LINE_LIMIT, 4, 5120, 35);
        check_room(LINE_LIMIT, PULL, 5120, 620);
        check_room(ROOM, PULL, 5184, 9919);
    }
}
