//! JSON strings written piece by piece, and a check of the written text.

use std::fmt::Write as _;

pub(crate) fn write_escaped(text: &str, out: &mut String) {
    let mut from = 0;
    for (at, byte) in text.bytes().enumerate() {
        let short = match byte {
            b'"' => "\\\"",
            b'\\' => "\\\\",
            b'\n' => "\\n",
            b'\r' => "\\r",
            b'\t' => "\\t",
            0x08 => "\\b",
            0x0c => "\\f",
            0..0x20 => "",
            _ => continue,
        };
        out.push_str(text.get(from..at).unwrap_or_default());
        if short.is_empty() {
            let _ = write!(out, "\\u{byte:04x}");
        } else {
            out.push_str(short);
        }
        from = at + 1;
    }
    out.push_str(text.get(from..).unwrap_or_default());
}

/// The length and a checksum (FNV-1a) of the written text, to detect a difference without keeping the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TextDigest {
    bytes: usize,
    check: u64,
}

impl Default for TextDigest {
    fn default() -> Self {
        Self {
            bytes: 0,
            check: 0xcbf2_9ce4_8422_2325,
        }
    }
}

impl TextDigest {
    pub(crate) fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.check = text.bytes().fold(self.check, |check, byte| {
            (check ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }

    /// Returns the rest of a text that begins with the written text; `None` if it begins differently.
    pub(crate) fn rest_of(self, text: &str) -> Option<&str> {
        let (known, rest) = text.split_at_checked(self.bytes)?;
        let mut found = Self::default();
        found.add(known);
        (found == self).then_some(rest)
    }
}
