//! The input: the same texts and calls for every parser.

use crate::payload::{self, Part};
use crate::prose::Writer;

/// Texts and calls, independent of a format.
#[derive(Debug)]
pub struct Logical {
    /// A short name, for files and rows.
    pub name: &'static str,
    /// The description.
    pub title: &'static str,
    pub(crate) parts: Vec<Part>,
}

/// All payloads.
pub fn all() -> Vec<Logical> {
    let mut prose = String::new();
    Writer::plain(5).prose(&mut prose, 200_000);
    vec![
        Logical {
            name: "calls",
            title: "100 calls of about 200 bytes, about 90 bytes of prose before each",
            parts: payload::heavy(100).parts,
        },
        one_call(100_000),
        Logical {
            name: "prose",
            title: "200 KB of prose without a call",
            parts: vec![Part::Text(prose)],
        },
    ]
}

/// A call with an argument of `len` bytes, between two sentences.
pub(crate) fn one_call(len: usize) -> Logical {
    Logical {
        name: "value",
        title: "one call with an argument of 100 KB",
        parts: payload::value(len).parts,
    }
}

impl Logical {
    /// Returns the name and argument of each call, in order.
    pub fn calls(&self) -> impl Iterator<Item = (&str, &str)> {
        self.parts.iter().filter_map(|part| match part {
            Part::Call(call) => Some((call.name.as_str(), call.values.first()?.1.as_str())),
            Part::Text(_) => None,
        })
    }

    /// Returns the texts between calls, in order.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.parts.iter().filter_map(|part| match part {
            Part::Text(text) => Some(text.as_str()),
            Part::Call(_) => None,
        })
    }
}
