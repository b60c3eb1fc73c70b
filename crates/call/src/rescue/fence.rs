//! The fences of a code block.

use crate::rescue::formats::BLANKS;

/// The fence that opened a code block, and the current line of the block.
#[derive(Clone, Debug)]
pub(super) struct Fence {
    pub(super) mark: char,
    /// The number of marks.
    pub(super) length: usize,
    /// The current line, while it may close the block. The opening line does not.
    line: Option<String>,
}

impl Fence {
    /// Returns the fence of a text that begins with three marks.
    pub(super) fn opened_by(text: &str) -> Option<Self> {
        let mark = text.trim_start().chars().next();
        let mark = mark.filter(|mark| matches!(mark, '`' | '~'))?;
        Some(Self {
            mark,
            length: 3,
            line: None,
        })
    }

    /// Takes the next character of the block. Returns whether it ends the line that closes the block, or `None` if its line has
    /// other text.
    pub(super) fn take(&mut self, c: char) -> Option<bool> {
        if c == '\n' {
            let line = self.line.replace(String::new())?;
            let marks = line.trim_matches(BLANKS);
            let is_end = marks.len() >= self.length && marks.chars().all(|c| c == self.mark);
            return (is_end || marks.is_empty()).then_some(is_end);
        }
        let may_close = c == self.mark || BLANKS.contains(&c);
        let line = self.line.take().filter(|_| may_close);
        self.line = line.map(|line| line + c.encode_utf8(&mut [0; 4]));
        self.line.is_some().then_some(false)
    }
}
