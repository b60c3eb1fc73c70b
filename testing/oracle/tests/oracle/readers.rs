//! The entry points of the parser: text and bytes, each with and without the fast path.

use std::cell::OnceCell;

use plaincall_oracle::agreement::{Agreement, agrees, bytes_agree};
use plaincall_oracle::merged::Merged;
use plaincall_oracle::oracle::Options;
use plaincall_syntax::{ByteParser, Dialect, Parser};

/// An entry point of the parser.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Entry {
    Text,
    /// Without the fast path.
    Exact,
    Bytes,
    /// As bytes, without the fast path.
    ExactBytes,
}

impl Entry {
    pub(crate) const ALL: [Self; 4] = [Self::Text, Self::Exact, Self::Bytes, Self::ExactBytes];

    /// Returns the offsets at which a text can be split.
    pub(crate) fn edges(self, text: &str) -> Vec<usize> {
        let takes_bytes = matches!(self, Self::Bytes | Self::ExactBytes);
        let is_edge = |at: &usize| takes_bytes || text.is_char_boundary(*at);
        (0..text.len()).filter(is_edge).collect()
    }
}

/// Unused parsers, built once for many texts.
pub(crate) struct Readers {
    dialect: Dialect,
    text: Parser,
    exact: Parser,
    bytes: OnceCell<ByteParser>,
}

impl Readers {
    /// Builds the parsers. The parser must accept the options.
    pub(crate) fn new(options: &Options) -> Self {
        let dialect = options.dialect();
        let text = Parser::new(&dialect).unwrap();
        Self {
            exact: text.clone().without_fast_path(),
            text,
            dialect,
            bytes: OnceCell::new(),
        }
    }

    /// Returns a parser of text.
    pub(crate) fn parser(&self, entry: Entry) -> Parser {
        match entry {
            Entry::Exact | Entry::ExactBytes => self.exact.clone(),
            Entry::Text | Entry::Bytes => self.text.clone(),
        }
    }

    /// Returns a parser of bytes.
    pub(crate) fn byte_parser(&self, entry: Entry) -> ByteParser {
        let fresh = || ByteParser::new(&self.dialect).unwrap();
        let parser = self.bytes.get_or_init(fresh).clone();
        match entry {
            Entry::Exact | Entry::ExactBytes => parser.without_fast_path(),
            Entry::Text | Entry::Bytes => parser,
        }
    }

    /// Returns whether the text, split at `cuts`, gives the expected events. Panics propagate.
    pub(crate) fn agree(
        &self,
        entry: Entry,
        text: &str,
        cuts: &[usize],
        expected: &[Merged],
    ) -> bool {
        let agreement = Agreement::new(expected, text);
        match entry {
            Entry::Text | Entry::Exact => agrees(agreement, self.parser(entry), chunks(text, cuts)),
            Entry::Bytes | Entry::ExactBytes => bytes_agree(
                agreement,
                self.byte_parser(entry),
                byte_chunks(text.as_bytes(), cuts),
            ),
        }
    }
}

/// Splits the text at `cuts`, which are sorted.
pub(crate) fn chunks<'t>(text: &'t str, cuts: &[usize]) -> impl Iterator<Item = &'t str> {
    let mut from = 0;
    let ends = cuts.iter().copied().chain([text.len()]);
    ends.map(move |to| &text[std::mem::replace(&mut from, to)..to])
}

/// Splits the bytes at `cuts`, which are sorted.
pub(crate) fn byte_chunks<'t>(bytes: &'t [u8], cuts: &[usize]) -> impl Iterator<Item = &'t [u8]> {
    let mut from = 0;
    let ends = cuts.iter().copied().chain([bytes.len()]);
    ends.map(move |to| &bytes[std::mem::replace(&mut from, to)..to])
}
