//! The byte door: a parser for input that may not be UTF-8.

use std::collections::VecDeque;
use std::str::Utf8Chunks;

use crate::dialect::{Dialect, DialectError};
use crate::event::{Event, EventKind, Syntax};
use crate::parser::{Chunk, Parser};
use crate::span::Span;

/// How far back the beginning of an event or diagnostic can lie, in bytes: a line at its limit and its surroundings.
const REACH: usize = crate::LINE_LIMIT + 512;
const REPLACEMENT: &str = "\u{FFFD}";

/// A [`Parser`] that takes bytes.
///
/// Each maximal invalid part becomes one U+FFFD; spans count the original bytes (`spec/common.md`, "Bytes"). A
/// character may be split between chunks.
///
/// ```
/// use plaincall_syntax::{ByteParser, Dialect};
///
/// let mut parser = ByteParser::new(&Dialect::block())?;
/// let events: Vec<_> = parser.feed(b"caf\xE9!").collect();
/// assert_eq!(events[1].source(), "\u{FFFD}");
/// assert_eq!(events[1].span.range(), 3..4);
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct ByteParser {
    parser: Parser,
    /// The beginning of a character at the end of the last chunk.
    cut: Vec<u8>,
    /// The events of such a character once it is completed, kept here so that their room is used again.
    ready: VecDeque<Event<'static>>,
    shrinks: Shrinks,
}

impl ByteParser {
    /// A parser for `dialect`.
    ///
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            parser: Parser::new(dialect)?,
            cut: Vec::new(),
            ready: VecDeque::new(),
            shrinks: Shrinks::default(),
        })
    }

    /// Takes the next chunk and returns the events it completes. See [`Parser::feed`].
    pub fn feed<'p, 'c>(&'p mut self, chunk: &'c [u8]) -> ByteEvents<'p, 'c> {
        self.parser.begin_chunk(0);
        self.ready.clear();
        let rest = self.complete_cut(chunk);
        let (whole, cut) = rest.split_at(rest.len() - cut_len(rest));
        self.cut.extend_from_slice(cut);
        ByteEvents {
            parser: self,
            parts: whole.utf8_chunks(),
            invalid: 0,
            chunk: Chunk::new(""),
        }
    }

    /// Ends the stream and returns the last events.
    pub fn finish(self) -> std::vec::IntoIter<Event<'static>> {
        let Self {
            mut parser,
            cut,
            mut shrinks,
            ..
        } = self;
        let mut events = Vec::new();
        if !cut.is_empty() {
            shrinks.replaced(cut.len(), &parser);
            events.extend(parser.feed(REPLACEMENT));
        }
        shrinks.note_pin(&parser);
        events.extend(parser.finish());
        let events: Vec<_> = events.into_iter().map(|event| shrinks.map(event)).collect();
        events.into_iter()
    }

    /// See [`Parser::syntax`].
    pub const fn syntax(&self) -> Option<Syntax> {
        self.parser.syntax()
    }

    /// Reads the rest of the character that the last chunk cut. Returns what is left of the chunk.
    fn complete_cut<'c>(&mut self, chunk: &'c [u8]) -> &'c [u8] {
        let mut rest = chunk;
        while !self.cut.is_empty()
            && let Some((&byte, behind)) = rest.split_first()
        {
            self.cut.push(byte);
            match std::str::from_utf8(&self.cut) {
                Ok(_) => rest = behind,
                Err(error) if error.error_len().is_none() => {
                    rest = behind;
                    continue;
                }
                // The new byte belongs to no character that was begun: it is read with the rest.
                Err(_) => {
                    self.cut.pop();
                }
            }
            let text = if let Ok(text) = std::str::from_utf8(&self.cut) {
                self.shrinks.fed += text.len();
                text
            } else {
                self.shrinks.replaced(self.cut.len(), &self.parser);
                REPLACEMENT
            };
            for event in self.parser.feed(text) {
                self.ready.push_back(self.shrinks.map(event.into_owned()));
            }
            self.shrinks.note_pin(&self.parser);
            self.cut.clear();
        }
        rest
    }
}

/// The length of the character that is begun but not completed at the end of `bytes`.
fn cut_len(bytes: &[u8]) -> usize {
    (1..=bytes.len().min(3))
        .find(|&len| {
            let tail = bytes.get(bytes.len() - len..).unwrap_or_default();
            std::str::from_utf8(tail)
                .is_err_and(|error| error.valid_up_to() == 0 && error.error_len().is_none())
        })
        .unwrap_or_default()
}

/// The events of one chunk of bytes. See [`ByteParser::feed`].
#[derive(Debug)]
#[must_use = "the events of a chunk are lost with it"]
pub struct ByteEvents<'p, 'c> {
    parser: &'p mut ByteParser,
    parts: Utf8Chunks<'c>,
    /// The width of the invalid part that follows the present chunk.
    invalid: usize,
    chunk: Chunk<'c>,
}

impl<'c> Iterator for ByteEvents<'_, 'c> {
    type Item = Event<'c>;

    fn next(&mut self) -> Option<Event<'c>> {
        let ByteParser {
            parser,
            ready,
            shrinks,
            ..
        } = &mut *self.parser;
        if let Some(event) = ready.pop_front() {
            return Some(event);
        }
        loop {
            if let Some(event) = parser.next(&mut self.chunk) {
                let event = shrinks.map(event);
                shrinks.note_pin(parser);
                return Some(event);
            }
            if self.invalid > 0 {
                parser.begin_chunk(REPLACEMENT.len());
                shrinks.replaced(std::mem::take(&mut self.invalid), parser);
                self.chunk = Chunk::new(REPLACEMENT);
                continue;
            }
            let part = self.parts.next()?;
            parser.begin_chunk(part.valid().len());
            shrinks.fed += part.valid().len();
            self.chunk = Chunk::new(part.valid());
            self.invalid = part.invalid().len();
        }
    }
}

impl Drop for ByteEvents<'_, '_> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

impl std::iter::FusedIterator for ByteEvents<'_, '_> {}

/// How much longer the text is than the bytes it was made from, at each place that an event may still name.
#[derive(Clone, Debug, Default)]
struct Shrinks {
    /// Bytes of text given to the parser.
    fed: usize,
    /// What holds before the first entry.
    base: usize,
    /// Where a replacement ends in the text, and by how much all replacements up to it have lengthened the text.
    entries: VecDeque<(usize, usize)>,
    /// A place further back that a diagnostic may still name, in the text and in the bytes.
    pin: Option<(usize, usize)>,
}

impl Shrinks {
    /// A replacement for `width` bytes is about to be fed.
    fn replaced(&mut self, width: usize, parser: &Parser) {
        self.note_pin(parser);
        let oldest = parser.position().saturating_sub(REACH);
        while let Some(&(_, total)) = self.entries.front().filter(|(end, _)| *end < oldest) {
            self.base = total;
            self.entries.pop_front();
        }
        self.fed += REPLACEMENT.len();
        let total = self.entries.back().map_or(self.base, |&(_, total)| total);
        self.entries
            .push_back((self.fed, total + REPLACEMENT.len() - width));
    }

    /// Remembers the place that the parser's next far-reaching diagnostic will begin at.
    fn note_pin(&mut self, parser: &Parser) {
        if let Some(pinned) = parser.pinned()
            && self.pin.is_none_or(|(text, _)| text != pinned)
        {
            self.pin = Some((pinned, self.place(pinned)));
        }
    }

    fn place(&self, text: usize) -> usize {
        match self.pin {
            Some((pinned, original)) if pinned == text => original,
            _ => {
                let index = self.entries.partition_point(|&(end, _)| end <= text);
                let before = index
                    .checked_sub(1)
                    .and_then(|index| self.entries.get(index));
                text - before.map_or(self.base, |&(_, total)| total)
            }
        }
    }

    fn map<'e>(&self, mut event: Event<'e>) -> Event<'e> {
        event.span = Span::new(self.place(event.span.start), self.place(event.span.end));
        if let EventKind::Diagnostic(diagnostic) = &mut event.kind {
            diagnostic.span = event.span;
        }
        event
    }
}
