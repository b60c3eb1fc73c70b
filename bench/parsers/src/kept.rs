//! The parts of a payload that a parser has kept.

use std::fmt;

use crate::logical::Logical;

/// The output of a parser, in order.
#[derive(Debug, Default)]
pub struct Found {
    /// The name and argument of each complete call.
    pub calls: Vec<(String, String)>,
    /// All text.
    pub text: String,
    /// The errors of the parser.
    pub error: Option<String>,
}

/// The share of a payload that came back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Kept {
    /// The calls that came back in order, with their names and arguments byte for byte.
    pub calls: usize,
    pub calls_expected: usize,
    /// The bytes of the texts between calls that came back byte for byte, in order.
    pub text: usize,
    pub text_expected: usize,
}

impl Kept {
    pub fn compare(logical: &Logical, found: &Found) -> Self {
        let mut kept = Self {
            calls: 0,
            calls_expected: logical.calls().count(),
            text: 0,
            text_expected: logical.texts().map(str::len).sum(),
        };
        let mut left = found.calls.iter();
        for (name, argument) in logical.calls() {
            let mut after = left.clone();
            if after.any(|call| call.0 == name && call.1 == argument) {
                kept.calls += 1;
                left = after;
            }
        }
        // Many parsers return the text of a chunk without the positions of the calls, so all text is joined.
        let mut rest = found.text.as_str();
        for text in logical.texts() {
            if let Some((_, after)) = rest.split_once(text) {
                kept.text += text.len();
                rest = after;
            }
        }
        kept
    }
}

impl fmt::Display for Kept {
    /// Two cells of the table.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let share = self.text * 1000 / self.text_expected.max(1);
        write!(
            formatter,
            "{}/{} | {}.{} %",
            self.calls,
            self.calls_expected,
            share / 10,
            share % 10
        )
    }
}
