//! A text that is being put together from text and calls.

use plaincall_call::Span;
use plaincall_syntax::Dialect;

use crate::status::Failure;
use crate::text::reading::read_bytes;
use crate::text::source::Counter;

/// A text to be written, which knows where its calls stand.
#[derive(Debug, Default)]
pub(crate) struct Draft {
    pub(crate) bytes: Vec<u8>,
    calls: Vec<Span>,
}

impl Draft {
    /// Adds text: no call of the syntax that is written.
    pub(crate) fn text(&mut self, bytes: &[u8]) {
        self.bytes.extend_from_slice(bytes);
    }

    /// Adds a call, without the line end behind it.
    pub(crate) fn call(&mut self, text: &[u8]) {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(text);
        self.calls.push(Span::new(start, self.bytes.len()));
    }

    /// Whether the text is read as what was put into it: the calls where they stand, and none elsewhere.
    ///
    /// Returns line and column of the first place that would be read as something else.
    ///
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub(crate) fn misread(&self, dialect: &Dialect) -> Result<Option<(usize, usize)>, Failure> {
        let document = read_bytes(&self.bytes, dialect, None)?;
        let mut read = document.calls().map(|call| call.span).fuse();
        let mut written = self.calls.iter().copied();
        let place = loop {
            match (read.next(), written.next()) {
                (None, None) => return Ok(None),
                (Some(read), Some(written)) if read == written => {}
                (Some(one), Some(two)) => break one.start.min(two.start),
                (Some(only), None) | (None, Some(only)) => break only.start,
            }
        };
        Ok(Some(Counter::new(&self.bytes).position(place)))
    }
}
