//! The streaming parser: chunks in, events out.
//!
//! What a chunk's end leaves undecided is *held*: copied behind what was held before. While something is held, the
//! machine's window is the held text with as much of the chunk behind it as it takes to decide; as soon as all that is
//! left of it lies in the chunk, the window is the chunk again, and events borrow from it.
//!
//! Here is the exact path, which is right by itself; [`fast`](crate::fast) takes what is frequent off it.

use crate::LINE_LIMIT;
use crate::dialect::{Dialect, DialectError};
use crate::event::{Ending, Event, EventKind, Header, Pointer, Slot, Syntax};
use crate::fast::Plain;
use crate::machine::{Content, Machine, Step, Token, Wait};
use crate::piece::{INLINE, Piece};
use crate::span::Span;
use crate::{ceil_char_boundary, floor_char_boundary};

/// How many bytes of a chunk are put behind held text at a time.
const PULL: usize = 64;

/// The room for held text, in bytes: a line at its limit, a few markers, and some more, so that it is seldom moved.
const ROOM: usize = LINE_LIMIT + 1024;

/// A streaming parser for one document: one reply of a model (`spec/common.md` 2, `spec/block.md`, `spec/emoji.md`).
///
/// It never fails and never loses text: whatever comes in, the spans of its events tile the input. How the input is
/// cut into chunks makes no difference, except for where text is cut.
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
    /// The window's place in the input.
    pub(crate) position: usize,
    /// How many bytes all chunks so far have: between chunks, the place where what is held ends.
    given: usize,
    /// What is held begins at `held_from`; empty if nothing is held.
    pub(crate) held: String,
    pub(crate) held_from: usize,
    /// How many bytes at the end of `held` are also in the present chunk.
    pub(crate) pulled: usize,
    /// What the machine waits for, if something is held.
    pub(crate) wait: Wait,
    /// Content that the machine has decided on and that has not been handed out yet.
    content: Content,
    pub(crate) content_left: usize,
    /// Whether the fast path is taken where there is one.
    pub(crate) is_fast: bool,
    /// What is known of what comes next.
    pub(crate) plain: Plain,
    /// How often a window was looked at, by the fast path or the exact one.
    #[cfg(test)]
    pub(crate) looks: usize,
    /// How often that was left to the exact path.
    #[cfg(test)]
    pub(crate) exact_steps: usize,
}

/// The present chunk, and how much of it has been taken.
#[derive(Debug)]
pub(crate) struct Chunk<'c> {
    pub(crate) text: &'c str,
    /// What has not been taken yet: an end of `text`.
    pub(crate) rest: &'c str,
    /// Whether the stream ends behind it.
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

    /// One that nothing is left of.
    pub(crate) const fn done() -> Self {
        // Step by step, because a field that is left out could not be excepted from mutation testing; it would only be
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

    /// The next `len` bytes.
    #[inline]
    pub(crate) fn take(&mut self, len: usize) -> &'c str {
        let (taken, rest) = self.rest.split_at_checked(len).unwrap_or_default();
        self.rest = rest;
        taken
    }

    /// The last `len` bytes that were taken have not been taken.
    fn give_back(&mut self, len: usize) {
        self.rest = self.text.get(self.taken() - len..).unwrap_or_default();
    }

    /// How many bytes have been taken.
    #[inline]
    pub(crate) const fn taken(&self) -> usize {
        self.text.len() - self.rest.len()
    }
}

impl Parser {
    /// A parser for `dialect`.
    ///
    /// # Errors
    /// Refuses a dialect that cannot work, for instance one with two equal markers.
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

    /// The same parser without its fast path: slower, and else no different. It is there for tests.
    #[doc(hidden)]
    pub fn without_fast_path(mut self) -> Self {
        self.is_fast = false;
        self.plain = Plain::Unknown;
        self
    }

    /// Takes the next chunk and returns the events it completes.
    ///
    /// The events borrow from the chunk, not from the parser. They are taken quickest by `for_each` or `fold`. Dropping the
    /// iterator early loses the events that were not taken, but nothing else: the rest of the chunk is read all the same.
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

    /// The syntax of the document: that of the dialect, or in the automatic dialect that of the first call, once
    /// there is one.
    pub const fn syntax(&self) -> Option<Syntax> {
        self.machine.syntax
    }

    /// The place in the input, in bytes, up to which events have been returned.
    pub const fn position(&self) -> usize {
        self.position
    }

    /// The earliest place that a diagnostic still to come may begin at, if it lies behind what is held.
    pub(crate) const fn pinned(&self) -> Option<usize> {
        self.machine.pin
    }

    /// The next event, or `None` when the chunk is used up (at the end of the stream: when everything is said).
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
            None => self.next_apart(chunk),
        }
    }

    /// The same apart from the callers, who ask [`plain_event`](Self::plain_event) by themselves.
    #[inline(never)]
    fn next_apart<'c>(&mut self, chunk: &mut Chunk<'c>) -> Option<Event<'c>> {
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

    /// The exact path: the same, step by step.
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
            // What is held was undecided without the chunk; it is not looked at again without more of it.
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
                // Apart from the events of held text, so that this one is made where it is returned.
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

    /// Puts more of the chunk behind what is held. Returns whether there was more.
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

    /// Puts `more` behind what is held.
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

    /// All that is left of the chunk is undecided.
    fn hold_rest(&mut self, chunk: &mut Chunk<'_>) {
        let rest = chunk.rest;
        self.held.clear();
        self.held_from = 0;
        self.hold(rest);
        self.pulled = rest.len();
        chunk.rest = "";
    }

    /// The next piece of the content that has been decided on.
    fn content_event<'c>(&mut self, chunk: &mut Chunk<'c>) -> Event<'c> {
        let piece = if self.is_held() {
            let window = self.held.get(self.held_from..).unwrap_or_default();
            // What also lies in the chunk is better borrowed from there.
            let own = window.len() - self.pulled;
            // At the end one piece takes less room than many.
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

    /// The header line, pointer line or marker of `len` bytes at the front of the window.
    #[inline]
    fn line<'c>(&self, len: usize, chunk: &Chunk<'c>) -> Piece<'c> {
        if self.is_held() {
            let window = self.held.get(self.held_from..).unwrap_or_default();
            Piece::copied(window.get(..len).unwrap_or_default())
        } else {
            Piece::borrowed(chunk.rest.get(..len).unwrap_or_default())
        }
    }

    /// Moves the window on by `len` bytes and returns their span.
    #[inline]
    fn consume(&mut self, len: usize, chunk: &mut Chunk<'_>) -> Span {
        let start = self.position;
        self.position += len;
        self.machine.consumed(len);
        if self.is_held() {
            self.held_from += len;
            let left = self.held.len() - self.held_from;
            if left <= self.pulled {
                // What is left lies wholly in the chunk: look at it there.
                chunk.give_back(left);
                self.held.clear();
                self.held_from = 0;
                self.pulled = 0;
            } else {
                // What was waited for stood at another front.
                self.wait = Wait::Any;
            }
        } else {
            chunk.take(len);
        }
        Span::new(start, self.position)
    }

    /// The same while nothing is held.
    #[inline]
    pub(crate) fn consume_chunk(&mut self, len: usize, chunk: &mut Chunk<'_>) -> Span {
        let start = self.position;
        self.position += len;
        self.machine.consumed(len);
        chunk.take(len);
        Span::new(start, self.position)
    }

    /// A chunk of `len` bytes comes next. What is held is held for good: it stands in no chunk any more.
    #[inline]
    pub(crate) fn begin_chunk(&mut self, len: usize) {
        if self.position + self.held.len() - self.held_from != self.given {
            self.give_chunk_up();
        }
        self.given += len;
        self.pulled = 0;
    }

    /// The last chunk's iterator was forgotten (`mem::forget`) before its end, so the state speaks of text that is
    /// lost. Reading goes on as text outside calls, at the right place.
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

    // Apart from `next`, so that an event of plain content reaches `f` from where it is made: it is then known what it is,
    // and the two ways to an event do not meet in memory.
    #[inline]
    fn fold<B, F>(mut self, init: B, mut f: F) -> B
    where
        F: FnMut(B, Event<'c>) -> B,
    {
        let Self { parser, chunk } = &mut self;
        let mut normalized = init;
        while !chunk.is_done {
            normalized = match parser.plain_event(chunk) {
                Some(event) => f(normalized, event),
                None => match parser.next_apart(chunk) {
                    Some(event) => f(normalized, event),
                    None => break,
                },
            };
        }
        normalized
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

/// An event that is delivered whole, with its source text.
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
            self.parser.next_apart(&mut self.chunk);
        }
    }
}

/// The events of a whole text (`spec/common.md` 2): what [`Parser::feed`] and [`Parser::finish`] return for it in one
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
/// Refuses a dialect that cannot work.
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

    /// The room that is taken, in bytes, and how often the window was moved to its front, after 10,000 pieces of `piece`
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
    fn what_is_held_takes_little_room_and_is_seldom_moved() {
        check_room(10, 1, 64, 184);
        check_room(10, 40, 100, 4999);
        check_room(500, 7, 1218, 97);
        check_room(LINE_LIMIT, 4, 5120, 35);
        check_room(LINE_LIMIT, PULL, 5120, 620);
        check_room(ROOM, PULL, 5184, 9919);
    }
}
