//! The doors of the parser: texts, the same without its fast path, and bytes.

use std::cell::OnceCell;

use plaincall_oracle::agreement::{Agreement, agrees, bytes_agree};
use plaincall_oracle::merged::Merged;
use plaincall_oracle::oracle::Options;
use plaincall_syntax::{ByteParser, Dialect, Parser};

/// A door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Door {
    Text,
    /// Without the fast path.
    Exact,
    Bytes,
    /// As bytes, without the fast path.
    ExactBytes,
}

impl Door {
    pub(crate) const ALL: [Self; 4] = [Self::Text, Self::Exact, Self::Bytes, Self::ExactBytes];

    /// Where a text can be cut for this door.
    pub(crate) fn edges(self, text: &str) -> Vec<usize> {
        let takes_bytes = matches!(self, Self::Bytes | Self::ExactBytes);
        let is_edge = |at: &usize| takes_bytes || text.is_char_boundary(*at);
        (0..text.len()).filter(is_edge).collect()
    }
}

/// Parsers that have read nothing yet, made once for many texts.
pub(crate) struct Readers {
    dialect: Dialect,
    text: Parser,
    exact: Parser,
    bytes: OnceCell<ByteParser>,
}

impl Readers {
    /// The options must be ones that the parser accepts.
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

    /// The parser of a door for texts.
    pub(crate) fn parser(&self, door: Door) -> Parser {
        match door {
            Door::Exact | Door::ExactBytes => self.exact.clone(),
            Door::Text | Door::Bytes => self.text.clone(),
        }
    }

    /// The parser of a door for bytes.
    pub(crate) fn byte_parser(&self, door: Door) -> ByteParser {
        let fresh = || ByteParser::new(&self.dialect).unwrap();
        let parser = self.bytes.get_or_init(fresh).clone();
        match door {
            Door::Exact | Door::ExactBytes => parser.without_fast_path(),
            Door::Text | Door::Bytes => parser,
        }
    }

    /// Whether the text, cut at these places, is read as expected. A panic goes on.
    pub(crate) fn agree(
        &self,
        door: Door,
        text: &str,
        cuts: &[usize],
        expected: &[Merged],
    ) -> bool {
        let agreement = Agreement::new(expected, text);
        match door {
            Door::Text | Door::Exact => agrees(agreement, self.parser(door), chunks(text, cuts)),
            Door::Bytes | Door::ExactBytes => bytes_agree(
                agreement,
                self.byte_parser(door),
                byte_chunks(text.as_bytes(), cuts),
            ),
        }
    }
}

/// The text cut at these places, which are in order.
pub(crate) fn chunks<'t>(text: &'t str, cuts: &[usize]) -> impl Iterator<Item = &'t str> {
    let mut from = 0;
    let ends = cuts.iter().copied().chain([text.len()]);
    ends.map(move |to| &text[std::mem::replace(&mut from, to)..to])
}

/// The bytes cut at these places, which are in order.
pub(crate) fn byte_chunks<'t>(bytes: &'t [u8], cuts: &[usize]) -> impl Iterator<Item = &'t [u8]> {
    let mut from = 0;
    let ends = cuts.iter().copied().chain([bytes.len()]);
    ends.map(move |to| &bytes[std::mem::replace(&mut from, to)..to])
}
