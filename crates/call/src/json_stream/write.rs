//! JSON written without a tree of it, and a text of which the beginning has been written already.

use std::fmt::{self, Write};

use crate::arguments::Arguments;
use crate::tree::{Node, NodeIndex};

pub(crate) fn write_escaped(text: &str, out: &mut impl Write) -> fmt::Result {
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
        out.write_str(text.get(from..at).unwrap_or_default())?;
        if short.is_empty() {
            write!(out, "\\u{byte:04x}")?;
        } else {
            out.write_str(short)?;
        }
        from = at + 1;
    }
    out.write_str(text.get(from..).unwrap_or_default())
}

pub(crate) fn write_key(key: &str, out: &mut impl Write) -> fmt::Result {
    out.write_char('"')?;
    write_escaped(key, out)?;
    out.write_str("\":")
}

/// Writes what stands at a place; recurses as deep as a pointer may be.
pub(crate) fn write_node(
    arguments: &Arguments,
    node: NodeIndex,
    out: &mut impl Write,
) -> fmt::Result {
    match arguments.tree().node(node) {
        Some(Node::Object(object)) => {
            out.write_char('{')?;
            for (place, (key, member)) in object.iter().enumerate() {
                if place > 0 {
                    out.write_char(',')?;
                }
                write_key(key, out)?;
                write_node(arguments, *member, out)?;
            }
            out.write_char('}')
        }
        Some(Node::Array(items)) => {
            out.write_char('[')?;
            for (place, item) in items.iter().enumerate() {
                if place > 0 {
                    out.write_char(',')?;
                }
                write_node(arguments, *item, out)?;
            }
            out.write_char(']')
        }
        Some(Node::Leaf(_)) | None => write!(out, "{}", arguments.value_of(node)),
    }
}

/// What has been written: how much, and a check value of it (FNV-1a), which shows a difference without the text.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Written {
    bytes: usize,
    check: u64,
}

impl Default for Written {
    fn default() -> Self {
        Self {
            bytes: 0,
            check: 0xcbf2_9ce4_8422_2325,
        }
    }
}

impl Written {
    pub(crate) fn add(&mut self, text: &[u8]) {
        self.bytes += text.len();
        self.check = text.iter().fold(self.check, |check, byte| {
            (check ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
    }
}

/// Takes a text from its beginning, and writes what comes behind the part that has been written already.
pub(crate) struct Rest<'o> {
    written: Written,
    seen: Written,
    out: &'o mut String,
}

impl<'o> Rest<'o> {
    pub(crate) fn new(written: Written, out: &'o mut String) -> Self {
        Self {
            written,
            seen: Written::default(),
            out,
        }
    }

    /// Whether the text has gone on behind what had been written.
    pub(crate) fn is_reached(&self) -> bool {
        self.seen.bytes == self.written.bytes && self.seen.check == self.written.check
    }
}

impl Write for Rest<'_> {
    /// Fails, before anything is written, if the text does not begin with what has been written.
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let left = self.written.bytes - self.seen.bytes;
        let known = left.min(text.len());
        if known > 0 {
            self.seen
                .add(text.as_bytes().get(..known).unwrap_or_default());
        }
        if known == text.len() {
            return Ok(());
        }
        if !self.is_reached() {
            return Err(fmt::Error);
        }
        self.out.push_str(text.get(known..).ok_or(fmt::Error)?);
        Ok(())
    }
}
