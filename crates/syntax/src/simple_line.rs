//! Header and pointer lines in their simplest form, for the fast path.

use crate::event::Part;

/// Returns whether an ASCII letter or digit or `_` is at this position.
pub(crate) const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// The class of a byte in a header or pointer line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InLine {
    /// Allowed in names and ids.
    Word,
    Colon,
    /// Allowed in pointers and lists of ids.
    Separator,
    Unusual,
}

/// A table, because lines are scanned byte by byte.
#[allow(
    clippy::indexing_slicing,
    reason = "in a constant: a mistake does not compile"
)]
const IN_LINE: [InLine; 256] = {
    let mut table = [InLine::Unusual; 256];
    let mut byte = 0_u8;
    while byte.is_ascii() {
        table[byte as usize] = match byte {
            b':' => InLine::Colon,
            b'/' | b'~' | b',' | b' ' => InLine::Separator,
            b'-' | b'.' => InLine::Word,
            _ if begins_word(byte) => InLine::Word,
            _ => InLine::Unusual,
        };
        byte += 1;
    }
    table
};

#[inline]
pub(crate) fn in_line(byte: u8) -> InLine {
    IN_LINE
        .get(usize::from(byte))
        .copied()
        .unwrap_or(InLine::Unusual)
}

/// The parts of a header line, in bytes from its marker.
pub(crate) struct HeaderParts {
    pub(crate) name: Part,
    pub(crate) id: Part,
    pub(crate) dependencies: Part,
    pub(crate) extra_colon: bool,
    pub(crate) unusual: bool,
}

/// A header or pointer line in its simplest form. Positions are relative to the front of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SimpleLine {
    start: usize,
    /// The end of its content, and its line end.
    pub(crate) content: usize,
    pub(crate) end: usize,
    /// The positions of its first two colons, or the end of its content.
    colons: [usize; 2],
}

impl SimpleLine {
    /// Matches the pointer line at the front of `line`, which begins at `start` of the window.
    #[inline]
    pub(crate) fn pointer(line: &[u8], start: usize) -> Option<Self> {
        Self::new(line, start, false)
    }

    /// Matches a header: a name and an id of letters, digits, `_`, `-` and `.`, where the name does not begin with `-` or
    /// `.`; at most two colons, with a list after the second one.
    #[inline]
    pub(crate) fn header(line: &[u8], start: usize) -> Option<Self> {
        if !begins_word(*line.first()?) {
            return None;
        }
        Self::new(line, start, true)
    }

    #[inline]
    fn new(line: &[u8], start: usize, is_header: bool) -> Option<Self> {
        let mut colons = [usize::MAX; 2];
        let mut count = 0;
        let mut at = 0;
        let line_end = loop {
            let rest = line.get(at..)?;
            let len = rest
                .iter()
                .position(|byte| in_line(*byte) != InLine::Word)?;
            at += len;
            let rest = rest.get(len..)?;
            match in_line(*rest.first()?) {
                InLine::Colon => {
                    match colons.get_mut(count) {
                        Some(colon) => *colon = start + at,
                        None if is_header => return None,
                        None => {}
                    }
                    count += 1;
                }
                InLine::Separator if is_header && count != 2 => return None,
                InLine::Separator | InLine::Word => {}
                InLine::Unusual => match rest {
                    [b'\n', ..] => break 1,
                    [b'\r', b'\n', ..] => break 2,
                    _ => return None,
                },
            }
            at += 1;
        };
        let content = start + at;
        Some(Self {
            start,
            content,
            end: content + line_end,
            colons: colons.map(|colon| colon.min(content)),
        })
    }

    pub(crate) fn parts(&self) -> HeaderParts {
        let to = self.content;
        let [name_end, id_end] = self.colons;
        HeaderParts {
            name: Part::new(self.start, name_end),
            id: Part::new(to.min(name_end + 1), id_end),
            dependencies: Part::new(to.min(id_end + 1), to),
            extra_colon: false,
            unusual: false,
        }
    }
}
