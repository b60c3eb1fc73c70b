//! The wrapped text of a reply on a terminal.

use anstyle::Style;

use crate::terminal::line::Line;

/// The rows before the current one. A call that has not ended has no row, so blank rows around it must not add up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Gap {
    #[default]
    None,
    Blank,
    BlankThenCall,
}

/// Wraps text that arrives in pieces.
#[derive(Debug, Default)]
pub(crate) struct Prose {
    row: Line,
    /// Complete rows that were not taken yet.
    complete: Vec<Line>,
    /// Whether the last character was a carriage return, which a line feed may follow.
    has_return: bool,
    /// Whether the next line end belongs to the end marker of a call.
    follows_call: bool,
    gap: Gap,
    /// Whether the previous row ended because it was full, and its last blank was dropped.
    follows_full_row: bool,
}

impl Prose {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn text(&mut self, text: &str, style: Style, width: usize) {
        for c in text.chars() {
            if std::mem::take(&mut self.has_return) && c != '\n' {
                self.push('\r', style, width);
            }
            match c {
                '\r' => self.has_return = true,
                '\n' => {
                    let ends_full_row =
                        std::mem::take(&mut self.follows_full_row) && self.row.is_empty();
                    if !std::mem::take(&mut self.follows_call) && !ends_full_row {
                        self.end_row_of_text();
                    }
                }
                c => self.push(c, style, width),
            }
        }
    }

    fn push(&mut self, c: char, style: Style, width: usize) {
        self.follows_call = false;
        self.follows_full_row = false;
        self.gap = Gap::None;
        self.row.push_character(style, c);
        self.fit(width);
    }

    /// Wraps the current row if the terminal has become too narrow for it.
    pub(crate) fn fit(&mut self, width: usize) {
        if self.row.width() > width {
            let (mut rows, last) = self.row.rows(width);
            self.follows_full_row = last.is_empty();
            self.row = last;
            self.complete.append(&mut rows);
        }
    }

    /// Adds a separate line, which does not affect the text around it.
    pub(crate) fn line(&mut self, line: Line) {
        self.end_started_row();
        self.gap = Gap::None;
        self.complete.push(line);
    }

    /// Marks a call: the next line end belongs to its end marker.
    pub(crate) fn call(&mut self) {
        self.follows_call = true;
        if self.gap == Gap::Blank {
            self.gap = Gap::BlankThenCall;
        }
    }

    fn end_row_of_text(&mut self) {
        if self.row.is_empty() {
            if self.gap == Gap::BlankThenCall {
                return;
            }
            self.gap = Gap::Blank;
        }
        self.end_row();
    }

    pub(crate) fn end_started_row(&mut self) {
        if !self.row.is_empty() {
            self.end_row();
        }
    }

    fn end_row(&mut self) {
        self.complete.push(std::mem::take(&mut self.row));
    }

    /// Takes the complete rows.
    pub(crate) fn take_rows(&mut self) -> Vec<Line> {
        std::mem::take(&mut self.complete)
    }

    /// Returns the number of complete rows.
    pub(crate) fn waiting_rows(&self) -> usize {
        self.complete.len()
    }

    pub(crate) fn row(&self) -> &Line {
        &self.row
    }
}

#[cfg(test)]
mod tests {
    use anstyle::Style;

    use super::{Line, Prose};

    /// `<` starts a call and `>` ends it; the rest is text. The rows must not depend on how the text is split.
    fn check(text: &str, expected: &[&str]) {
        for size in [1, 3, 1000] {
            let mut prose = Prose::new();
            let characters: Vec<char> = text.chars().collect();
            for piece in characters.chunks(size) {
                for c in piece {
                    match c {
                        '<' => prose.line(Line::of(Style::new(), "CALL")),
                        '>' => prose.call(),
                        c => prose.text(&c.to_string(), Style::new(), 10),
                    }
                }
            }
            prose.end_started_row();
            let rows: Vec<String> = prose.take_rows().iter().map(Line::to_plain).collect();
            assert_eq!(rows, expected, "{text:?}");
        }
    }

    #[test]
    fn rows() {
        check("", &[]);
        check("one two three four", &["one two", "three four"]);
        check("0123456789 \nx", &["0123456789", "x"]);
        check("0123456789 \n\nx", &["0123456789", "", "x"]);
        check("one 456789 a", &["one 456789", "a"]);
        check("a\r\nb\n\nc\n", &["a", "b", "", "c"]);
        check("a\rb", &["a␍b"]);
        check("text\n<>\nmore", &["text", "CALL", "more"]);
        check(
            "text <>\n<>\n\nmore",
            &["text ", "CALL", "CALL", "", "more"],
        );
        check("<> more", &["CALL", " more"]);
        check("text\n\n<>\n\nmore", &["text", "", "CALL", "", "more"]);
        check("text\n\n>\n>\n\nmore", &["text", "", "more"]);
        check("text\n\n\nmore", &["text", "", "", "more"]);
        check("text\n>\n\nmore\n\n>\n\n", &["text", "", "more", ""]);
    }
}
