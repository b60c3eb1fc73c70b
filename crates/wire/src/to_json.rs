//! Writes JSON text directly as bytes.
//!
//! Most of the output is long strings. They are searched eight bytes at a time for characters to escape.

use std::borrow::Cow;

/// A type that can be written as JSON text.
pub trait ToJson {
    /// Appends the JSON text.
    fn write_json(&self, out: &mut Vec<u8>);
}

impl ToJson for str {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.reserve(self.len() + 2);
        out.push(b'"');
        escaped(self.as_bytes(), out);
        out.push(b'"');
    }
}

impl ToJson for String {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.as_str().write_json(out);
    }
}

impl ToJson for Cow<'_, str> {
    fn write_json(&self, out: &mut Vec<u8>) {
        self.as_ref().write_json(out);
    }
}

impl ToJson for u64 {
    fn write_json(&self, out: &mut Vec<u8>) {
        // Writing a number to a vector cannot fail.
        let _ = serde_json::to_writer(out, self);
    }
}

impl ToJson for bool {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(if *self { b"true" } else { b"false" });
    }
}

/// `null`
impl ToJson for () {
    fn write_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"null");
    }
}

impl<T: ToJson> ToJson for Option<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Some(value) => value.write_json(out),
            None => ().write_json(out),
        }
    }
}

impl<T: ToJson> ToJson for Vec<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        let mut before = b'[';
        for item in self {
            out.push(before);
            before = b',';
            item.write_json(out);
        }
        close(before, *b"[]", out);
    }
}

impl<T: ToJson + ?Sized> ToJson for &T {
    fn write_json(&self, out: &mut Vec<u8>) {
        (**self).write_json(out);
    }
}

impl<T: ToJson + ?Sized> ToJson for Box<T> {
    fn write_json(&self, out: &mut Vec<u8>) {
        (**self).write_json(out);
    }
}

/// An object that is being written.
pub(crate) struct Object<'o> {
    before: u8,
    out: &'o mut Vec<u8>,
}

impl<'o> Object<'o> {
    pub(crate) fn new(out: &'o mut Vec<u8>) -> Self {
        Self { before: b'{', out }
    }

    pub(crate) fn field(&mut self, name: &str, value: &(impl ToJson + ?Sized)) {
        self.out.push(self.before);
        self.before = b',';
        name.write_json(self.out);
        self.out.push(b':');
        value.write_json(self.out);
    }

    /// Writes a field whose name has no character to escape, from its quoted name and colon.
    pub(crate) fn known_field(&mut self, name: &str, value: &(impl ToJson + ?Sized)) {
        self.out.push(self.before);
        self.before = b',';
        self.out.extend_from_slice(name.as_bytes());
        value.write_json(self.out);
    }

    pub(crate) fn end(self) {
        close(self.before, *b"{}", self.out);
    }
}

/// Ends an object or list that its first entry began, or writes an empty one.
fn close(before: u8, [open, close]: [u8; 2], out: &mut Vec<u8>) {
    if before == open {
        out.push(open);
    }
    out.push(close);
}

/// Appends the string between the quotes.
fn escaped(bytes: &[u8], out: &mut Vec<u8>) {
    let mut from = 0;
    let mut pass = |out: &mut Vec<u8>, at: usize| {
        out.extend_from_slice(bytes.get(from..at).unwrap_or_default());
        if let Some(byte) = bytes.get(at) {
            escape(*byte, out);
        }
        from = at + 1;
    };
    let words = bytes.chunks_exact(8);
    let tail = words.remainder();
    for (index, word) in words.enumerate() {
        let mut found = word.first_chunk().map_or(0, |word| specials(*word));
        while found != 0 {
            pass(out, index * 8 + found.trailing_zeros() as usize / 8);
            found &= found - 1;
        }
    }
    for (index, byte) in tail.iter().enumerate() {
        if is_special(*byte) {
            pass(out, bytes.len() - tail.len() + index);
        }
    }
    out.extend_from_slice(bytes.get(from..).unwrap_or_default());
}

/// Returns whether a byte must be escaped.
fn is_special(byte: u8) -> bool {
    byte < 0x20 || byte == b'"' || byte == b'\\'
}

/// Returns the high bit of each of eight bytes that must be escaped.
fn specials(word: [u8; 8]) -> u64 {
    const ONES: u64 = u64::from_le_bytes([1; 8]);
    const HIGH: u64 = ONES << 7;
    let word = u64::from_le_bytes(word);
    // The sum of two numbers below 128 does not reach the next byte.
    let below = |word: u64, least: u64| !((word & !HIGH) + ONES * (0x80 - least)) & !word & HIGH;
    let is_same = |byte: u8| below(word ^ (ONES * u64::from(byte)), 1);
    below(word, 0x20) | is_same(b'"') | is_same(b'\\')
}

fn escape(byte: u8, out: &mut Vec<u8>) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let short = match byte {
        b'"' | b'\\' => byte,
        b'\n' => b'n',
        b'\r' => b'r',
        b'\t' => b't',
        0x08 => b'b',
        0x0C => b'f',
        _ => {
            let digit = |half: u8| DIGITS.get(usize::from(half)).copied().unwrap_or(b'0');
            out.extend_from_slice(b"\\u00");
            out.extend([digit(byte >> 4), digit(byte & 15)]);
            return;
        }
    };
    out.extend([b'\\', short]);
}

#[cfg(test)]
mod tests {
    use super::{is_special, specials};

    #[test]
    fn eight_bytes_are_looked_at_as_one_is() {
        for byte in 0..=u8::MAX {
            for place in 0..8 {
                for other in [
                    b'x', 0x20, 0x7F, 0x80, 0xFF, b'!', b'#', b'[', b']', b'"', 0,
                ] {
                    let mut word = [other; 8];
                    word[place] = byte;
                    let expected = word.map(|byte| if is_special(byte) { 0x80 } else { 0 });
                    assert_eq!(specials(word).to_le_bytes(), expected, "{word:?}");
                }
            }
        }
    }
}
