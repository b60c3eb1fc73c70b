//! Decodes event streams.

use std::borrow::Cow;

use memchr::{memchr, memchr2};

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

/// An event of a stream. The fields `id` and `retry`, which are for reconnecting, are dropped.
///
/// Some model servers write an error as a field `error`, which the standard does not define, or as lines of JSON without a
/// field. It becomes the data of an event with the name `error`, in place of other fields.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event<'c> {
    /// The field `event`; `None` if it is missing or empty, which browsers call `message`.
    pub name: Option<Cow<'c, str>>,
    /// The `data` lines, joined with LF.
    pub data: Cow<'c, str>,
}

impl Event<'_> {
    /// Converts it to an owned value.
    pub fn into_owned(self) -> Event<'static> {
        Event {
            name: self.name.map(|name| Cow::Owned(name.into_owned())),
            data: Cow::Owned(self.data.into_owned()),
        }
    }
}

/// The limits of a [`Decoder`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The maximum length of a line in bytes, without its end. Default: 4 MiB.
    pub line: usize,
    /// The maximum total length of the name and data of an event, in bytes. Default: 16 MiB.
    pub event: usize,
}

impl Limits {
    /// The default limits.
    pub const fn new() -> Self {
        Self {
            line: 4 << 20,
            event: 16 << 20,
        }
    }

    /// Sets the maximum length of a line.
    #[must_use]
    pub const fn line(mut self, bytes: usize) -> Self {
        self.line = bytes;
        self
    }

    /// Sets the maximum length of an event.
    #[must_use]
    pub const fn event(mut self, bytes: usize) -> Self {
        self.event = bytes;
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::new()
    }
}

/// An error of an event stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// A line exceeds this limit, in bytes.
    #[error("a line of the event stream has more than {0} bytes")]
    LongLine(usize),
    /// An event exceeds this limit, in bytes.
    #[error("an event of the event stream has more than {0} bytes")]
    LongEvent(usize),
}

/// Decodes an event stream that arrives in pieces.
///
/// A line ends with LF, CR or CRLF. Bytes that are not UTF-8 become U+FFFD. The result does not depend on how the stream is
/// split. Takes linear time; memory is bounded by [`Limits`].
#[derive(Debug, Default)]
pub struct Decoder {
    limits: Limits,
    /// The beginning of an incomplete line.
    line: Vec<u8>,
    /// The last byte was a CR, so a following LF belongs to it.
    is_after_carriage_return: bool,
    /// No line has ended yet.
    has_begun: bool,
    block: Block<'static>,
    is_broken: bool,
}

/// The lines since the last empty one.
#[derive(Debug, Default)]
struct Block<'c> {
    name: Option<Cow<'c, str>>,
    data: Option<Cow<'c, str>>,
    error: Option<Cow<'c, str>>,
}

impl Block<'_> {
    fn into_owned(self) -> Block<'static> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        Block {
            name: self.name.map(own),
            data: self.data.map(own),
            error: self.error.map(own),
        }
    }

    fn len(&self) -> usize {
        let len = |text: &Option<Cow<'_, str>>| text.as_ref().map_or(0, |text| text.len());
        len(&self.name) + len(&self.data) + len(&self.error)
    }
}

impl Decoder {
    /// Creates a decoder with the default limits.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the limits.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Decodes the next bytes and returns the events that end in them.
    ///
    /// An event within one piece borrows from it. Dropping the iterator early loses its remaining events, but later ones
    /// stay correct. After an error, no more events are returned.
    pub fn feed<'d, 'c>(&'d mut self, chunk: &'c [u8]) -> Events<'d, 'c> {
        Events {
            rest: if self.is_broken { &[] } else { chunk },
            block: std::mem::take(&mut self.block),
            decoder: self,
        }
    }

    /// Ends the stream and returns the data after the last empty line.
    ///
    /// The standard discards this data, but some servers omit the last empty line. A JSON reader
    /// can check whether the data is complete.
    ///
    /// # Errors
    /// Returns an error if the data exceeds the limit.
    pub fn finish(mut self) -> Result<Option<Event<'static>>, StreamError> {
        if self.is_broken {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        let mut events = self.feed(&[]);
        let line = events.without_mark(Cow::Owned(line));
        if !line.is_empty() {
            events.line(line)?;
        }
        let event = events.dispatch();
        Ok(event.map(Event::into_owned))
    }
}

/// The events of one piece of a stream, returned by [`Decoder::feed`].
#[derive(Debug)]
pub struct Events<'d, 'c> {
    decoder: &'d mut Decoder,
    rest: &'c [u8],
    block: Block<'c>,
}

impl<'c> Iterator for Events<'_, 'c> {
    type Item = Result<Event<'c>, StreamError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let event = match self.next_line() {
                Ok(Some(line)) if line.is_empty() => Ok(self.dispatch()),
                Ok(Some(line)) => self.line(line).map(|()| None),
                Ok(None) => return None,
                Err(error) => Err(error),
            };
            match event {
                Ok(None) => {}
                Ok(Some(event)) => return Some(Ok(event)),
                Err(error) => {
                    self.decoder.is_broken = true;
                    self.rest = &[];
                    self.block = Block::default();
                    return Some(Err(error));
                }
            }
        }
    }
}

impl<'c> Events<'_, 'c> {
    /// Returns the next complete line. An incomplete one is kept.
    fn next_line(&mut self) -> Result<Option<Cow<'c, [u8]>>, StreamError> {
        let decoder = &mut *self.decoder;
        if decoder.is_after_carriage_return && !self.rest.is_empty() {
            decoder.is_after_carriage_return = false;
            self.rest = self.rest.strip_prefix(b"\n").unwrap_or(self.rest);
        }
        let end = memchr2(b'\n', b'\r', self.rest);
        let (piece, tail) = self.rest.split_at(end.unwrap_or(self.rest.len()));
        if decoder.line.len() + piece.len() > decoder.limits.line {
            decoder.line = Vec::new();
            return Err(StreamError::LongLine(decoder.limits.line));
        }
        let Some((end, rest)) = tail.split_first() else {
            decoder.line.extend_from_slice(piece);
            self.rest = &[];
            return Ok(None);
        };
        decoder.is_after_carriage_return = *end == b'\r';
        self.rest = rest;
        let line = if decoder.line.is_empty() {
            Cow::Borrowed(piece)
        } else {
            let mut line = std::mem::take(&mut decoder.line);
            line.extend_from_slice(piece);
            Cow::Owned(line)
        };
        Ok(Some(self.without_mark(line)))
    }

    /// Removes the byte order mark from the first line.
    fn without_mark(&mut self, line: Cow<'c, [u8]>) -> Cow<'c, [u8]> {
        let has_begun = std::mem::replace(&mut self.decoder.has_begun, true);
        if !has_begun && line.starts_with(BYTE_ORDER_MARK) {
            return cut(line, BYTE_ORDER_MARK.len());
        }
        line
    }

    /// Handles a line that is not empty.
    fn line(&mut self, line: Cow<'c, [u8]>) -> Result<(), StreamError> {
        let colon = memchr(b':', &line);
        let (name, rest) = line.split_at(colon.unwrap_or(line.len()));
        let value = name.len()
            + match rest {
                [b':', b' ', ..] => 2,
                [b':', ..] => 1,
                _ => 0,
            };
        match name {
            b"data" => {
                let text = text(cut(line, value));
                self.check_size(text.len() + usize::from(self.block.data.is_some()))?;
                self.block.data = Some(joined(self.block.data.take(), text));
            }
            b"event" => {
                let text = text(cut(line, value));
                self.block.name = None;
                self.check_size(text.len())?;
                self.block.name = Some(text);
            }
            b"" | b"id" | b"retry" => {}
            b"error" => self.error(text(cut(line, value)))?,
            _ if line.starts_with(b"{") || self.block.error.is_some() => self.error(text(line))?,
            // A field that the standard does not define.
            _ => {}
        }
        Ok(())
    }

    /// Adds a line to the error.
    fn error(&mut self, line: Cow<'c, str>) -> Result<(), StreamError> {
        self.check_size(line.len() + usize::from(self.block.error.is_some()))?;
        self.block.error = Some(joined(self.block.error.take(), line));
        Ok(())
    }

    fn check_size(&self, more: usize) -> Result<(), StreamError> {
        let limit = self.decoder.limits.event;
        if self.block.len() + more > limit {
            return Err(StreamError::LongEvent(limit));
        }
        Ok(())
    }

    /// Ends the event at an empty line, if there was data.
    fn dispatch(&mut self) -> Option<Event<'c>> {
        let block = std::mem::take(&mut self.block);
        if let Some(data) = block.error {
            let name = Some(Cow::Borrowed("error"));
            return Some(Event { name, data });
        }
        Some(Event {
            name: block.name.filter(|name| !name.is_empty()),
            data: block.data?,
        })
    }
}

impl Drop for Events<'_, '_> {
    fn drop(&mut self) {
        for _ in self.by_ref() {}
        self.decoder.block = std::mem::take(&mut self.block).into_owned();
    }
}

/// Joins lines with LF.
fn joined<'c>(before: Option<Cow<'c, str>>, line: Cow<'c, str>) -> Cow<'c, str> {
    match before {
        None => line,
        Some(before) => {
            let mut lines = before.into_owned();
            lines.push('\n');
            lines.push_str(&line);
            Cow::Owned(lines)
        }
    }
}

/// Removes a prefix of the line.
fn cut(line: Cow<'_, [u8]>, from: usize) -> Cow<'_, [u8]> {
    match line {
        Cow::Borrowed(line) => Cow::Borrowed(line.get(from..).unwrap_or_default()),
        Cow::Owned(mut line) => {
            line.drain(..from.min(line.len()));
            Cow::Owned(line)
        }
    }
}

fn text(bytes: Cow<'_, [u8]>) -> Cow<'_, str> {
    match bytes {
        // Validation alone is faster for valid text.
        Cow::Borrowed(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Cow::Borrowed(text),
            Err(_) => String::from_utf8_lossy(bytes),
        },
        Cow::Owned(bytes) => Cow::Owned(
            String::from_utf8(bytes)
                .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
        ),
    }
}
