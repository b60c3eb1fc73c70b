//! Header and pointer lines without anything unusual: what the fast path takes of them.

use crate::LINE_LIMIT;
use crate::block::HeaderParts;
use crate::event::Part;

/// Whether an ASCII letter or digit or `_` stands there.
pub(crate) const fn begins_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// What a byte of a header or pointer line is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InLine {
    /// Stands in names and ids.
    Word,
    Colon,
    /// Stands in pointers and lists of ids.
    Apart,
    Unusual,
}

/// A table, because a line is gone through byte by byte.
#[allow(
    clippy::indexing_slicing,
    reason = "in a constant: a mistake does not compile"
)]
const IN_LINE: [InLine; 256] = {
    let mut table = [InLine::Unusual; 256];
    let mut byte = 0_u8;
    while byte < 128 {
        table[byte as usize] = match byte {
            b':' => InLine::Colon,
            b'/' | b'~' | b',' | b' ' => InLine::Apart,
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

/// A header or pointer line without anything unusual. Its places count from the front of the window.
#[derive(Clone, Copy, Debug)]
pub(crate) struct UsualLine {
    start: usize,
    /// Where its content ends, and its line end.
    pub(crate) content: usize,
    pub(crate) end: usize,
    /// Where its first two colons are; where its content ends if they are not.
    colons: [usize; 2],
    /// Whether it may be a header.
    is_header: bool,
}

impl UsualLine {
    /// The line at the front of `line`, which begins at `start` of the window.
    #[inline]
    pub(crate) fn new(line: &[u8], start: usize) -> Option<Self> {
        let mut colons = [usize::MAX; 2];
        let mut count = 0;
        let mut is_header = begins_word(*line.first()?);
        let mut at = 0;
        let line_end = loop {
            let rest = line.get(at..)?;
            let word = rest
                .iter()
                .position(|byte| in_line(*byte) != InLine::Word)?;
            at += word;
            match rest.get(word..)? {
                [b':', ..] => {
                    match colons.get_mut(count) {
                        Some(colon) => *colon = start + at,
                        None => is_header = false,
                    }
                    count += 1;
                }
                [b'\n', ..] => break 1,
                [b'\r', b'\n', ..] => break 2,
                [byte, ..] if in_line(*byte) == InLine::Apart => is_header &= count == 2,
                _ => return None,
            }
            at += 1;
        };
        let content = start + at;
        // A carriage return before the line end counts as content here: of a line at the limit the exact path tells.
        (at + line_end <= LINE_LIMIT + 1).then(|| Self {
            start,
            content,
            end: content + line_end,
            colons: colons.map(|colon| colon.min(content)),
            is_header,
        })
    }

    /// The parts of a usual header: letters, digits, `_`, `-` and `.`, at most two colons, and behind the second one a
    /// list as well.
    pub(crate) fn header(&self) -> Option<HeaderParts> {
        let to = self.content;
        let [name_end, id_end] = self.colons;
        self.is_header.then(|| HeaderParts {
            name: Part::new(self.start, name_end),
            id: Part::new(to.min(name_end + 1), id_end),
            dependencies: Part::new(to.min(id_end + 1), to),
            extra_colon: false,
            unusual: false,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::UsualLine;
    use crate::block::header_parts;

    #[test]
    fn a_usual_header_has_the_parts_of_a_header() {
        for (line, is_usual) in [
            ("A", true),
            ("create-file", true),
            ("a.b:id_1", true),
            ("a:", true),
            ("a::x", true),
            ("a:b:c, d e", true),
            ("", false),
            (":a", false),
            ("-a", false),
            (" a", false),
            ("a b", false),
            ("a:b c", false),
            ("a:b:c:d", false),
            ("é", false),
            ("a\"", false),
        ] {
            let window = format!("<s>{line}\n");
            let to = window.len() - 1;
            let usual = UsualLine::new(&window.as_bytes()[3..], 3).and_then(|line| line.header());
            assert_eq!(usual.is_some(), is_usual, "{line:?}");
            if let Some(usual) = usual {
                let parts = header_parts(&window, 3, to).expect("what is usual is a header");
                assert_eq!(usual.name.of(&window), parts.name.of(&window), "{line:?}");
                assert_eq!(usual.id.of(&window), parts.id.of(&window), "{line:?}");
                let list = parts.dependencies.of(&window);
                assert_eq!(usual.dependencies.of(&window), list, "{line:?}");
                assert!(!parts.unusual && !parts.extra_colon, "{line:?}");
            }
        }
    }
}
