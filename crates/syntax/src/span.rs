//! Positions in the input.

use std::fmt;
use std::ops::Range;

/// A range of the input, in bytes from its beginning.
///
/// For [`Parser::feed`](crate::Parser::feed), the input is all chunks together; for
/// [`ByteParser`](crate::ByteParser), it is the original bytes, before any replacement.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Span {
    /// The first byte.
    pub start: usize,
    /// The byte after the last one.
    pub end: usize,
}

impl Span {
    /// Creates the span from `start` up to, but not including, `end`.
    pub const fn new(start: usize, end: usize) -> Self {
        Self { start, end }
    }

    /// Returns the number of bytes.
    pub const fn len(self) -> usize {
        self.end.saturating_sub(self.start)
    }

    /// Returns whether the span is empty.
    pub const fn is_empty(self) -> bool {
        self.start >= self.end
    }

    /// Returns the span as a range for indexing a text.
    pub const fn range(self) -> Range<usize> {
        self.start..self.end
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}..{}", self.start, self.end)
    }
}
