//! A text with the places in it: bytes as they came, characters as they are shown, lines and columns.

use std::ops::Range;

/// A whole text, as it is shown: each invalid part of the bytes is one U+FFFD.
pub(crate) struct Source {
    pub(crate) name: String,
    pub(crate) text: String,
    /// Where an invalid part ends, in the bytes and in the text, in order.
    replaced: Vec<(usize, usize)>,
}

impl Source {
    pub(crate) fn new(name: String, bytes: Vec<u8>) -> Self {
        let bytes = match String::from_utf8(bytes) {
            Ok(text) => {
                return Self {
                    name,
                    text,
                    replaced: Vec::new(),
                };
            }
            Err(error) => error.into_bytes(),
        };
        let mut text = String::with_capacity(bytes.len());
        let mut replaced = Vec::new();
        let mut read = 0;
        for chunk in bytes.utf8_chunks() {
            text.push_str(chunk.valid());
            read += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                text.push(char::REPLACEMENT_CHARACTER);
                read += chunk.invalid().len();
                replaced.push((read, text.len()));
            }
        }
        Self {
            name,
            text,
            replaced,
        }
    }

    /// How many parts of the bytes were no UTF-8, and where the first of them is shown.
    pub(crate) fn replaced(&self) -> Option<(usize, Range<usize>)> {
        let &(_, end) = self.replaced.first()?;
        let start = end - char::REPLACEMENT_CHARACTER.len_utf8();
        Some((self.replaced.len(), start..end))
    }

    /// The place in the bytes of a place in the text.
    pub(crate) fn in_bytes(&self, place: usize) -> usize {
        let before = self.replaced.partition_point(|&(_, end)| end <= place);
        match before
            .checked_sub(1)
            .and_then(|last| self.replaced.get(last))
        {
            Some(&(bytes, text)) => place - text + bytes,
            None => place,
        }
    }
}

/// Counts lines and columns on the way through a text, so that many places cost no more than one.
pub(crate) struct Counter<'t> {
    text: &'t [u8],
    place: usize,
    line: usize,
    column: usize,
}

impl<'t> Counter<'t> {
    pub(crate) fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            place: 0,
            line: 1,
            column: 1,
        }
    }

    /// Line and column of a place, both from 1, the column in characters. A place before the last one asked for
    /// begins the way again.
    pub(crate) fn position(&mut self, place: usize) -> (usize, usize) {
        if place < self.place {
            *self = Self::new(self.text);
        }
        let passed = self.text.get(self.place..place).unwrap_or_default();
        let mut last = passed;
        if let Some(end) = memchr::memrchr(b'\n', passed) {
            self.line += memchr::memchr_iter(b'\n', passed).count();
            self.column = 1;
            last = passed.get(end + 1..).unwrap_or_default();
        }
        self.column += String::from_utf8_lossy(last).chars().count();
        self.place = place;
        (self.line, self.column)
    }
}
