//! Styled lines of text with a known width.

use std::fmt::Write as _;

use anstyle::Style;
use unicode_width::UnicodeWidthChar;

use crate::sanitize::{is_invisible, visible};

/// The distance between tab stops, in columns.
const TAB: usize = 4;

/// A line without a line end. Control characters are made visible, so a line never moves the cursor.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pieces: Vec<(Style, String)>,
    width: usize,
}

impl Line {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// Creates a line with one piece.
    pub(crate) fn of(style: Style, text: &str) -> Self {
        let mut line = Self::new();
        line.push(style, text);
        line
    }

    pub(crate) fn width(&self) -> usize {
        self.width
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.width == 0
    }

    /// Adds text without line ends. A tab becomes blanks.
    pub(crate) fn push(&mut self, style: Style, text: &str) {
        for c in text.chars() {
            self.push_character(style, c);
        }
    }

    pub(crate) fn push_character(&mut self, style: Style, c: char) {
        match c {
            '\t' => self.pad(style, TAB - self.width % TAB),
            c if is_invisible(c) => {
                for c in visible(c).chars() {
                    self.add(style, c);
                }
            }
            c => self.add(style, c),
        }
    }

    fn add(&mut self, style: Style, c: char) {
        self.width += self.width_of(c);
        match self.pieces.last_mut() {
            Some((last, text)) if *last == style => text.push(c),
            _ => self.pieces.push((style, c.to_string())),
        }
    }

    /// Returns the columns that a character takes at the end of the line.
    fn width_of(&self, c: char) -> usize {
        if c == '\u{fe0f}' {
            // The variation selector makes the previous character an emoji with two columns.
            let last = self
                .pieces
                .last()
                .and_then(|(_, text)| text.chars().next_back());
            return usize::from(last.and_then(UnicodeWidthChar::width) == Some(1));
        }
        c.width().unwrap_or(0)
    }

    fn pad(&mut self, style: Style, columns: usize) {
        for _ in 0..columns {
            self.add(style, ' ');
        }
    }

    /// Pads to a column, with at least one blank if the line has text.
    pub(crate) fn pad_to(&mut self, column: usize) {
        let columns = column.saturating_sub(self.width);
        self.pad(
            Style::new(),
            if self.is_empty() {
                columns
            } else {
                columns.max(1)
            },
        );
    }

    pub(crate) fn append(&mut self, other: &Self) {
        for (style, text) in &other.pieces {
            self.push(*style, text);
        }
    }

    /// Truncates the line to `width` columns, ending with `ellipsis`.
    pub(crate) fn truncate(self, width: usize, ellipsis: &str) -> Self {
        if self.width <= width {
            return self;
        }
        let room = width.saturating_sub(ellipsis.chars().count());
        let mut truncated = Self::new();
        for (style, text) in &self.pieces {
            for c in text.chars() {
                if truncated.width + truncated.width_of(c) > room {
                    truncated.push(*style, ellipsis);
                    return truncated;
                }
                truncated.add(*style, c);
            }
        }
        truncated
    }

    /// Wraps the line to rows of at most `width` columns, between words if possible.
    pub(crate) fn wrap(&self, width: usize) -> Vec<Self> {
        let (mut rows, last) = self.rows(width);
        if rows.is_empty() || !last.is_empty() {
            rows.push(last);
        }
        rows
    }

    /// Returns the full rows and the rest, which is empty if the last row is exactly full.
    pub(crate) fn rows(&self, width: usize) -> (Vec<Self>, Self) {
        let mut rows = Vec::new();
        let mut row = self.clone();
        // Even on a narrow terminal, each row has at least one character.
        while row.width > width.max(1) {
            let (front, rest) = row.split(width.max(1));
            rows.push(front);
            row = rest;
        }
        (rows, row)
    }

    /// Splits off the first row of at most `width` columns: after its last blank, else at `width`. Blanks at the split
    /// are dropped.
    fn split(&self, width: usize) -> (Self, Self) {
        let characters = || {
            let pieces = self.pieces.iter();
            pieces.flat_map(|(style, text)| text.chars().map(move |c| (*style, c)))
        };
        let mut columns = Self::new();
        let mut fits = 0;
        let mut blank = None;
        let mut has_word = false;
        for (index, (style, c)) in characters().enumerate() {
            if c == ' ' && has_word {
                blank = Some(index);
            }
            has_word |= c != ' ';
            columns.add(style, c);
            if columns.width > width {
                break;
            }
            fits = index + 1;
        }
        let at = blank.unwrap_or(fits).max(1);
        let mut front = Self::new();
        let mut rest = Self::new();
        for (index, (style, c)) in characters().enumerate() {
            if index < at {
                front.add(style, c);
            } else if !(rest.is_empty() && c == ' ' && blank.is_some()) {
                rest.add(style, c);
            }
        }
        (front, rest)
    }

    /// Writes the line, with or without colors.
    pub(crate) fn write(&self, out: &mut String, has_color: bool) {
        for (style, text) in &self.pieces {
            // Writing to a string cannot fail.
            let _ = if has_color && *style != Style::new() {
                write!(out, "{style}{text}{style:#}")
            } else {
                write!(out, "{text}")
            };
        }
    }

    /// Returns the text of the line.
    #[cfg(test)]
    pub(crate) fn to_plain(&self) -> String {
        let mut text = String::new();
        self.write(&mut text, false);
        text
    }
}

pub(crate) fn indented(style: Style, text: &str) -> Line {
    let mut line = Line::of(Style::new(), "    ");
    line.push(style, text);
    line
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::Line;

    fn line(text: &str) -> Line {
        Line::of(Style::new(), text)
    }

    fn check_truncated(text: &str, width: usize, expected: &str) {
        let truncated = line(text).truncate(width, "…");
        assert_eq!(truncated.to_plain(), expected, "{text}");
        assert!(truncated.width() <= width);
    }

    #[test]
    fn truncation() {
        check_truncated("short", 5, "short");
        check_truncated("longer", 5, "long…");
        check_truncated("日本語", 5, "日本…");
        check_truncated("日本語", 4, "日…");
        check_truncated("", 0, "");
    }

    #[test]
    fn width() {
        for (text, width) in [
            ("abc", 3),
            ("日本", 4),
            ("\u{1f6e0}\u{fe0f}[x]", 5),
            ("a\tb", 5),
            ("e\u{301}", 1),
            ("\u{1b}[2J", 4),
            ("\u{202e}", 8),
        ] {
            assert_eq!(line(text).width(), width, "{text:?}");
        }
    }

    #[test]
    fn control_characters_are_visible() {
        assert_eq!(line("a\u{1b}[2Jb\r\u{7}").to_plain(), "a␛[2Jb␍␇");
    }

    fn check_wrapped(text: &str, width: usize, expected: &[&str]) {
        let rows: Vec<String> = line(text).wrap(width).iter().map(Line::to_plain).collect();
        assert_eq!(rows, expected, "{text}");
    }

    #[test]
    fn wrap() {
        check_wrapped("", 5, &[""]);
        check_wrapped("one two", 7, &["one two"]);
        check_wrapped("one two three", 7, &["one two", "three"]);
        check_wrapped("one two", 5, &["one", "two"]);
        check_wrapped("unbreakable", 5, &["unbre", "akabl", "e"]);
        check_wrapped("    indented text", 9, &["    inden", "ted text"]);
        check_wrapped("日本語", 1, &["日", "本", "語"]);
    }
}
