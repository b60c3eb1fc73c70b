//! Detects binary files and line endings.

use memchr::{memchr, memchr_iter};

/// How much of a file is checked for binary data, in bytes.
const LOOKED_AT: usize = 8 << 10;

/// Why the beginning of a file is not text.
pub(super) fn why_binary(bytes: &[u8]) -> Option<&'static str> {
    let begin = bytes.get(..LOOKED_AT.min(bytes.len())).unwrap_or_default();
    memchr(0, begin)?;
    Some(match begin {
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => "it is UTF-16, and only UTF-8 is supported",
        [0x7f, b'E', b'L', b'F', ..] => "it is an executable",
        [0x89, b'P', b'N', b'G', ..] => "it is an image",
        [b'P', b'K', ..] | [0x1f, 0x8b, ..] => "it is an archive",
        [b'S', b'Q', b'L', b'i', b't', b'e', ..] => "it is a database",
        _ => "it contains NUL bytes",
    })
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct LineEnds {
    pub(super) lf: usize,
    pub(super) crlf: usize,
}

impl LineEnds {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let mut ends = Self::default();
        for at in memchr_iter(b'\n', bytes) {
            let before = at.checked_sub(1).and_then(|before| bytes.get(before));
            if before == Some(&b'\r') {
                ends.crlf += 1;
            } else {
                ends.lf += 1;
            }
        }
        ends
    }
}

/// The line number of a byte, from 1.
pub(super) fn line_of(bytes: &[u8], at: usize) -> usize {
    memchr_iter(b'\n', bytes.get(..at).unwrap_or(bytes)).count() + 1
}

/// A line of at most `most` bytes, with a note about the rest.
pub(super) fn shown(line: &[u8], length: usize, most: usize) -> String {
    let kept = line.get(..most.min(line.len())).unwrap_or_default();
    if kept.len() == length {
        return String::from_utf8_lossy(kept).into_owned();
    }
    // Do not split a character.
    let whole = match std::str::from_utf8(kept) {
        Err(error) if error.error_len().is_none() => error.valid_up_to(),
        _ => kept.len(),
    };
    let (kept, _) = kept.split_at(whole);
    let text = String::from_utf8_lossy(kept);
    format!("{text} [… {} more bytes of this line]", length - whole)
}

/// Numbers in a sentence: `3, 17 and 40`.
pub(super) fn listed(numbers: &[usize], most: usize) -> String {
    let shown: Vec<String> = numbers.iter().take(most).map(usize::to_string).collect();
    match (shown.split_last(), numbers.len() > most) {
        (Some(_), true) => format!("{} and more", shown.join(", ")),
        (Some((last, [])), false) => last.clone(),
        (Some((last, before)), false) => format!("{} and {last}", before.join(", ")),
        (None, _) => String::new(),
    }
}
