//! Texts with their positions: bytes, lines and columns.

use std::ops::Range;

/// A text in which each invalid part of the bytes is replaced with U+FFFD.
pub struct Source {
    /// The name of the file.
    pub name: String,
    /// The text.
    pub text: String,
    /// The end of each invalid part, in the bytes and in the text.
    replaced: Vec<(usize, usize)>,
}

impl Source {
    /// Creates a source from bytes.
    pub fn new(name: String, bytes: Vec<u8>) -> Self {
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

    /// Returns the number of invalid parts and the position of the first one in the text.
    pub fn replaced(&self) -> Option<(usize, Range<usize>)> {
        let &(_, end) = self.replaced.first()?;
        let start = end - char::REPLACEMENT_CHARACTER.len_utf8();
        Some((self.replaced.len(), start..end))
    }

    /// Converts a position in the text to a position in the bytes.
    pub fn in_bytes(&self, position: usize) -> usize {
        let before = self.replaced.partition_point(|&(_, end)| end <= position);
        match before
            .checked_sub(1)
            .and_then(|last| self.replaced.get(last))
        {
            Some(&(bytes, text)) => position - text + bytes,
            None => position,
        }
    }
}

/// Counts lines and columns incrementally, so that many positions in order cost one pass.
pub struct Counter<'t> {
    text: &'t [u8],
    position: usize,
    line: usize,
    column: usize,
}

impl<'t> Counter<'t> {
    /// Creates a counter at the beginning of a text.
    pub fn new(text: &'t [u8]) -> Self {
        Self {
            text,
            position: 0,
            line: 1,
            column: 1,
        }
    }

    /// Returns line and column of a position, from 1; the column counts characters. A position before the previous one
    /// restarts the count.
    pub fn position(&mut self, position: usize) -> (usize, usize) {
        if position < self.position {
            *self = Self::new(self.text);
        }
        let skipped = self.text.get(self.position..position).unwrap_or_default();
        let mut last = skipped;
        if let Some(end) = memchr::memrchr(b'\n', skipped) {
            self.line += memchr::memchr_iter(b'\n', skipped).count();
            self.column = 1;
            last = skipped.get(end + 1..).unwrap_or_default();
        }
        self.column += String::from_utf8_lossy(last).chars().count();
        self.position = position;
        (self.line, self.column)
    }
}
