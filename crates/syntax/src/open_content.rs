//! Content that a caller may take without the parser.
//!
//! A caller for which a call of the parser costs more than a look at a few bytes, such as a program beside a WebAssembly
//! module, can make the event of most chunks itself.

use crate::bytes::ByteParser;
use crate::fast::Plain;
use crate::parser::Parser;
use crate::scan::is_in;

/// The kind of content that continues in the next chunk, until a marker may begin. [`content_len`](Self::content_len) returns
/// how much of a chunk is content, and [`ByteParser::advance`] skips content whose events the caller has made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenContent {
    /// Whether the content is a value, with events [`ValueDelta`](crate::EventKind::ValueDelta), or text outside calls.
    pub is_value: bool,
    /// Whether a line end may belong to the marker after it.
    pub ends_with_line: bool,
    /// Bit `n % 64` of number `n / 64` is set if a marker or an escape may begin with the byte `n` of UTF-8.
    pub first_bytes: [u64; 4],
}

impl OpenContent {
    /// Returns how many bytes of a chunk are content, or `None` if only the parser knows: a marker may begin in it.
    ///
    /// The length is that of the chunk, or one byte less. That byte is a line feed. It is content if the next chunk has a length
    /// too; otherwise feed it before that chunk.
    pub fn content_len(&self, chunk: &str) -> Option<usize> {
        // A byte inside a character counts too: no marker begins there, so this is never wrong.
        if chunk.bytes().any(|byte| is_in(&self.first_bytes, byte)) {
            return None;
        }
        match chunk.as_bytes() {
            [] => None,
            [.., b'\r'] | [.., b'\r', b'\n'] if self.ends_with_line => None,
            [before @ .., b'\n'] if self.ends_with_line => Some(before.len()),
            _ => Some(chunk.len()),
        }
    }
}

impl Parser {
    fn open_content(&self) -> Option<OpenContent> {
        let markers = self.machine.ends_of(self.plain)?;
        Some(OpenContent {
            is_value: matches!(self.plain, Plain::Value | Plain::Body),
            ends_with_line: matches!(self.plain, Plain::Value),
            first_bytes: markers.first_bytes(),
        })
    }
}

impl ByteParser {
    /// Returns the kind of content that continues, or `None` if only the parser knows what comes next. Call it after the
    /// events of a chunk have been read.
    ///
    /// ```
    /// use plaincall_syntax::{ByteParser, Dialect};
    ///
    /// let mut parser = ByteParser::new(&Dialect::block())?;
    /// parser.feed(b"I lo").for_each(drop);
    /// let open = parser.open_content().expect("text");
    /// assert_eq!(open.content_len("ok."), Some(3));
    /// assert_eq!(open.content_len("!!!G"), None);
    ///
    /// // The caller makes the event of this chunk.
    /// parser.advance(b"ok.".len());
    /// let next = parser.feed(b" Then").next().expect("text");
    /// assert_eq!(next.span.range(), 7..12);
    /// # Ok::<(), plaincall_syntax::DialectError>(())
    /// ```
    #[doc(hidden)]
    pub fn open_content(&self) -> Option<OpenContent> {
        let open = self.parser.open_content()?;
        self.is_between_characters().then_some(open)
    }

    /// Continues after `length` bytes of content ([`OpenContent::content_len`]), which the caller has turned into events.
    /// Does nothing while [`open_content`](Self::open_content) is `None`.
    #[doc(hidden)]
    pub fn advance(&mut self, length: usize) {
        if self.open_content().is_some() {
            self.parser.begin_chunk(length);
            self.parser.machine.first_column = false;
            self.parser.position += length;
            self.advanced(length);
        }
    }
}
