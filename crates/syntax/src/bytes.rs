//! A parser for input that may not be UTF-8.

use std::collections::VecDeque;
use std::ops::Range;

use crate::dialect::{Dialect, DialectError};
use crate::event::{Event, EventKind, Syntax};
use crate::parser::{Chunk, Parser};
use crate::span::Span;

/// The maximum distance back to the beginning of an event or diagnostic, in bytes: a line at its limit plus its context.
const REACH: usize = crate::LINE_LIMIT + 512;
const REPLACEMENT: &str = "\u{FFFD}";

/// A [`Parser`] for bytes.
///
/// Each maximal invalid part becomes one U+FFFD; spans refer to the original bytes (`spec/common.md` 1.2). A
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
    pub(crate) parser: Parser,
    /// The incomplete character at the end of the last chunk.
    cut: Vec<u8>,
    /// The length of all chunks so far, in bytes.
    given: usize,
    shrinks: Shrinks,
}

impl ByteParser {
    /// Creates a parser for `dialect`.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            parser: Parser::new(dialect)?,
            cut: Vec::new(),
            given: 0,
            shrinks: Shrinks::default(),
        })
    }

    /// See [`Parser::without_fast_path`].
    pub fn without_fast_path(mut self) -> Self {
        self.parser = self.parser.without_fast_path();
        self
    }

    /// Parses the next chunk and returns the events it completes. See [`Parser::feed`].
    #[inline]
    pub fn feed<'p, 'c>(&'p mut self, chunk: &'c [u8]) -> ByteEvents<'p, 'c> {
        self.skip_unread();
        self.given += chunk.len();
        let (completed, rest) = self.complete_cut(chunk);
        let (whole, cut) = rest.split_at(rest.len() - cut_len(rest));
        self.cut.extend_from_slice(cut);
        // Checks valid text in long steps; `utf8_chunks` takes one byte at a time.
        let (valid, parts) = match std::str::from_utf8(whole) {
            Ok(text) => (text, &[][..]),
            Err(_) => ("", whole),
        };
        let (valid, chunk) = if completed.is_some() {
            (valid, Chunk::done())
        } else {
            self.begin_valid(valid.len());
            ("", Chunk::new(valid))
        };
        ByteEvents {
            parser: self,
            completed: completed.map(Completed::new),
            valid,
            parts,
            invalid: 0,
            chunk,
        }
    }

    /// Begins a chunk of `len` bytes of valid text.
    #[inline]
    fn begin_valid(&mut self, len: usize) {
        self.parser.begin_chunk(len);
        self.shrinks.fed += len;
    }

    /// Ends the stream and returns the last events.
    pub fn finish(mut self) -> std::vec::IntoIter<Event<'static>> {
        self.skip_unread();
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

    /// Returns whether the last chunk has not split a character.
    pub(crate) fn is_between_characters(&self) -> bool {
        self.cut.is_empty()
    }

    /// Counts bytes of valid text that the parser has not read.
    pub(crate) const fn advanced(&mut self, length: usize) {
        self.given += length;
        self.shrinks.fed += length;
    }

    /// Skips the unread rest of the last chunk if its iterator was leaked (`mem::forget`).
    fn skip_unread(&mut self) {
        let unread = self.given - (self.shrinks.fed - self.shrinks.total + self.cut.len());
        self.begin_valid(unread);
        self.parser.begin_chunk(0);
    }

    /// Completes the character that the last chunk split. Returns the character, if it is complete, and the rest of the chunk.
    fn complete_cut<'c>(&mut self, chunk: &'c [u8]) -> (Option<char>, &'c [u8]) {
        let mut rest = chunk;
        while let (false, Some((&byte, behind))) = (self.cut.is_empty(), rest.split_first()) {
            self.cut.push(byte);
            let completed = match std::str::from_utf8(&self.cut) {
                Ok(text) => text.chars().next(),
                Err(error) if error.error_len().is_none() => {
                    rest = behind;
                    continue;
                }
                Err(_) => None,
            };
            let completed = if let Some(character) = completed {
                rest = behind;
                self.begin_valid(character.len_utf8());
                character
            } else {
                // The new byte does not continue the incomplete character, so it is parsed with the rest.
                self.parser.begin_chunk(REPLACEMENT.len());
                self.shrinks.replaced(self.cut.len() - 1, &self.parser);
                char::REPLACEMENT_CHARACTER
            };
            self.cut.clear();
            return (Some(completed), rest);
        }
        (None, rest)
    }
}

/// Returns the length of the incomplete character at the end of `bytes`.
fn cut_len(bytes: &[u8]) -> usize {
    if bytes.last().is_none_or(u8::is_ascii) {
        return 0;
    }
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
    completed: Option<Completed>,
    /// The next valid text.
    valid: &'c str,
    /// The bytes after it, valid and invalid.
    parts: &'c [u8],
    /// The width of the invalid part after the current chunk.
    invalid: usize,
    chunk: Chunk<'c>,
}

/// A character from two chunks, fed as a chunk of its own.
#[derive(Debug)]
struct Completed {
    character: char,
    /// As in [`Chunk`].
    taken: usize,
    is_done: bool,
}

impl Completed {
    const fn new(character: char) -> Self {
        Self {
            character,
            taken: 0,
            is_done: false,
        }
    }

    fn next(&mut self, parser: &mut Parser) -> Option<Event<'static>> {
        let mut room = [0; 4];
        let mut chunk = Chunk::new(self.character.encode_utf8(&mut room));
        chunk.take(self.taken);
        chunk.is_done = self.is_done;
        let event = parser.next(&mut chunk).map(Event::into_owned);
        self.taken = chunk.taken();
        self.is_done = chunk.is_done;
        event
    }
}

impl<'c> Iterator for ByteEvents<'_, 'c> {
    type Item = Event<'c>;

    #[inline]
    fn next(&mut self) -> Option<Event<'c>> {
        // Nothing was replaced so far, so the spans of the text are those of the bytes.
        while self.completed.is_none() && self.parser.shrinks.total == 0 {
            if let Some(event) = self.parser.parser.next(&mut self.chunk) {
                return Some(event);
            }
            if !self.begin_part() {
                return None;
            }
        }
        self.next_mapped()
    }
}

impl<'c> ByteEvents<'_, 'c> {
    /// Returns the next event after a replacement or a split character.
    fn next_mapped(&mut self) -> Option<Event<'c>> {
        loop {
            let ByteParser {
                parser, shrinks, ..
            } = &mut *self.parser;
            let event = match &mut self.completed {
                Some(completed) => completed.next(parser),
                None => parser.next(&mut self.chunk),
            };
            if let Some(event) = event {
                let event = shrinks.map(event);
                shrinks.note_pin(parser);
                return Some(event);
            }
            self.completed = None;
            if !self.begin_part() {
                return None;
            }
        }
    }

    /// Begins the next valid text or replacement as a chunk of the parser. Returns whether there is one.
    #[inline]
    fn begin_part(&mut self) -> bool {
        if self.valid.is_empty() && self.parts.is_empty() && self.invalid == 0 {
            return false;
        }
        self.begin_next_part();
        true
    }

    fn begin_next_part(&mut self) {
        let ByteParser {
            parser, shrinks, ..
        } = &mut *self.parser;
        if self.invalid > 0 {
            parser.begin_chunk(REPLACEMENT.len());
            shrinks.replaced(std::mem::take(&mut self.invalid), parser);
            self.chunk = Chunk::new(REPLACEMENT);
            return;
        }
        let mut valid = std::mem::take(&mut self.valid);
        if valid.is_empty() {
            for part in self.parts.utf8_chunks().take(1) {
                valid = part.valid();
                self.invalid = part.invalid().len();
            }
            let read = valid.len() + self.invalid;
            self.parts = self.parts.get(read..).unwrap_or_default();
        }
        self.parser.begin_valid(valid.len());
        self.chunk = Chunk::new(valid);
    }
}

impl Drop for ByteEvents<'_, '_> {
    fn drop(&mut self) {
        while self.next().is_some() {}
    }
}

impl std::iter::FusedIterator for ByteEvents<'_, '_> {}

/// How much longer the text is than its bytes, at each position that an event may still refer to.
///
/// Thousands of bytes may have a replacement at every third byte of text, so this is a bit map.
#[derive(Clone, Debug, Default)]
struct Shrinks {
    /// The length of the text given to the parser, in bytes.
    fed: usize,
    /// The total length that all replacements so far have added.
    total: usize,
    /// Two bits for each byte of text: the length added by the replacement that ends at this byte.
    words: VecDeque<u64>,
    /// The position in the text where the first word begins.
    from: usize,
    /// An earlier position that a diagnostic may still refer to, in the text and in the bytes.
    pin: Option<(usize, usize)>,
    /// The last requested position, in the text and in the bytes. The next one is near it.
    asked: (usize, usize),
}

/// The number of bytes of text per word.
const WORD: usize = 32;

/// The maximum number of words: for positions that may be referred to, and the held text after them.
const WORDS: usize = 2 * REACH / WORD + 2;

impl Shrinks {
    /// Registers a replacement for `width` bytes before it is fed.
    fn replaced(&mut self, width: usize, parser: &Parser) {
        self.note_pin(parser);
        let oldest = parser.position().saturating_sub(REACH);
        if self.asked.0 < oldest {
            self.asked = (oldest, self.moved(oldest));
        }
        while self.from + WORD <= oldest && self.words.pop_front().is_some() {
            self.from += WORD;
        }
        self.fed += REPLACEMENT.len();
        let longer = REPLACEMENT.len() - width;
        let last = self.fed - 1;
        if self.words.is_empty() {
            self.words.reserve_exact(WORDS);
            self.from = last - last % WORD;
        }
        let index = (last - self.from) / WORD;
        if index >= self.words.len() {
            self.words.resize(index + 1, 0);
        }
        if let Some(word) = self.words.get_mut(index) {
            *word |= [0, 1, 2].get(longer).copied().unwrap_or(0_u64) << (2 * (last % WORD));
        }
        self.total += longer;
    }

    /// Returns the length added by the replacements that end in this range of the text.
    fn longer(&self, stretch: Range<usize>) -> usize {
        if stretch.is_empty() {
            return 0;
        }
        let index = |text: usize| text.saturating_sub(self.from) / WORD;
        let words = index(stretch.start)..self.words.len().min(index(stretch.end) + 1);
        let begins = (self.from..).step_by(WORD).skip(words.start);
        let words = self.words.iter().skip(words.start).take(words.len());
        let within = |(word, begin): (&u64, usize)| {
            // Masks the bits of the text before `text`.
            let before = |text: usize| match 2 * text.saturating_sub(begin) {
                count @ ..64 => (1_u64 << count) - 1,
                _ => u64::MAX,
            };
            sum_of_pairs(word & before(stretch.end) & !before(stretch.start))
        };
        words.zip(begins).map(within).sum()
    }

    /// Converts the position `text` to bytes, starting from the last requested one.
    fn moved(&self, text: usize) -> usize {
        let (from, place) = self.asked;
        if text < from {
            (place + self.longer(text..from)).saturating_sub(from - text)
        } else {
            (place + (text - from)).saturating_sub(self.longer(from..text))
        }
    }

    /// Stores the position at which the next diagnostic of the parser may begin.
    fn note_pin(&mut self, parser: &Parser) {
        let is_new = |pinned: &usize| self.pin.is_none_or(|(text, _)| text != *pinned);
        if let Some(pinned) = parser.pinned().filter(is_new) {
            self.pin = Some((pinned, self.place(pinned)));
        }
    }

    fn place(&mut self, text: usize) -> usize {
        if let Some((_, place)) = self.pin.filter(|(pinned, _)| *pinned == text) {
            return place;
        }
        let place = self.moved(text);
        self.asked = (text, place);
        place
    }

    fn map<'e>(&mut self, mut event: Event<'e>) -> Event<'e> {
        event.span = Span::new(self.place(event.span.start), self.place(event.span.end));
        if let EventKind::Diagnostic(diagnostic) = &mut event.kind {
            diagnostic.span = event.span;
        }
        event
    }
}

/// Sums the two-bit numbers in `word`.
fn sum_of_pairs(word: u64) -> usize {
    const LOW: u64 = 0x5555_5555_5555_5555;
    let (ones, twos) = (word & LOW, (word >> 1) & LOW);
    let sum = ones.count_ones() + 2 * twos.count_ones();
    usize::try_from(sum).unwrap_or_default()
}
