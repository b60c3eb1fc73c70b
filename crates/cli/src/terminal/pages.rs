//! Pages of a question: the complete text on pages that fit on the terminal, preceded by an overview with both ends of
//! each long text.

use anstyle::Style;

use crate::sanitize::{looks_blank, visible};
use crate::terminal::human;
use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{NOTICE, PLAIN};
use crate::terminal::tty::Size;

/// Longer runs of blanks are shown as a count, because they could push text out of view.
const MAX_BLANKS: usize = 20;
/// Longer runs of blank lines are shown as a count.
const MAX_BLANK_LINES: usize = 4;
/// How many characters of one line an overview shows.
const MAX_CHARS: usize = 480;
/// How many characters of a line are wrapped at once.
const CHUNK: usize = 2_000;
/// The minimum number of rows of a page, even on a low terminal.
const MIN_ROWS: usize = 3;

/// How much of a text is shown.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    Whole,
    /// At most this many lines, from the beginning and the end.
    Ends(usize),
}

/// The lines below the heading of a question.
#[derive(Debug, Default)]
pub(crate) struct PageText {
    pub(crate) lines: Vec<Line>,
    /// Whether anything was omitted.
    pub(crate) is_truncated: bool,
}

impl PageText {
    /// Adds texts on separate lines. `what` names them in the note about omitted lines.
    pub(crate) fn add(&mut self, texts: &[(Style, String)], extent: Extent, what: &str) {
        let max = match extent {
            Extent::Ends(max) if texts.len() > max => max,
            _ => return self.add_all(texts, extent),
        };
        let (front, back) = (max - max / 3, max / 3);
        let after = texts.len() - back;
        self.add_all(texts.get(..front).unwrap_or_default(), extent);
        self.is_truncated = true;
        let omitted = human::count(after - front, "more line");
        let text = format!("({omitted} of the {what})");
        self.lines.push(indented(NOTICE, &text));
        self.add_all(texts.get(after..).unwrap_or_default(), extent);
    }

    fn add_all(&mut self, texts: &[(Style, String)], extent: Extent) {
        let mut texts = texts.iter().peekable();
        while let Some((style, text)) = texts.next() {
            if text.trim().is_empty() {
                let mut blank = 1;
                while texts.next_if(|(_, text)| text.trim().is_empty()).is_some() {
                    blank += 1;
                }
                if blank > MAX_BLANK_LINES {
                    let text = format!("({blank} blank lines)");
                    self.lines.push(indented(NOTICE, &text));
                } else {
                    let text = visible_line(*style, text);
                    self.lines.extend(std::iter::repeat_n(text, blank));
                }
            } else {
                self.add_text(*style, text, extent);
            }
        }
    }

    fn add_text(&mut self, style: Style, text: &str, extent: Extent) {
        let length = text.chars().count();
        if matches!(extent, Extent::Ends(_)) && length > MAX_CHARS {
            self.is_truncated = true;
            let (front, back) = (MAX_CHARS - MAX_CHARS / 3, MAX_CHARS / 3);
            let start: String = text.chars().take(front).collect();
            let end: String = text.chars().skip(length - back).collect();
            let mut line = visible_line(style, &start);
            let more = format!(" ({} more characters) ", length - MAX_CHARS);
            line.push(NOTICE, &more);
            push_visible(&mut line, style, &end, false);
            self.lines.push(line);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(CHUNK);
            let end = end.map_or(rest.len(), |(at, _)| at);
            // A run of blanks is not split.
            let front = rest.get(..end).unwrap_or(rest);
            let end = match front.trim_end_matches(is_blank).len() {
                0 => end + leading_blanks(rest.get(end..).unwrap_or_default()),
                trimmed if end < rest.len() => trimmed,
                _ => end,
            };
            let (piece, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.lines.push(visible_line(style, piece));
            rest = after;
        }
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

/// Splits lines into pages. A call can be approved only on the last page.
pub(crate) fn pages(lines: &[Line], size: Size) -> Vec<Vec<Line>> {
    let rows = rows(lines, size);
    rows.chunks(height(size)).map(<[Line]>::to_vec).collect()
}

/// Returns the first page of the overview. The full pages follow it.
pub(crate) fn overview(lines: &[Line], size: Size) -> Vec<Line> {
    let mut rows = rows(lines, size);
    if rows.len() > height(size) {
        let more = rows.split_off(height(size).saturating_sub(1));
        let more = human::count(more.len(), "line");
        rows.push(indented(NOTICE, &format!("({more} more)")));
    }
    rows
}

fn rows(lines: &[Line], size: Size) -> Vec<Line> {
    let width = size.columns.saturating_sub(1).max(1);
    lines.iter().flat_map(|line| line.wrap(width)).collect()
}

/// Returns how many rows of a page fit above the answers.
pub(crate) fn height(size: Size) -> usize {
    (size.rows * 3 / 4).saturating_sub(3).max(MIN_ROWS)
}

/// Returns a line in which every character is visible.
fn visible_line(style: Style, text: &str) -> Line {
    let mut line = Line::of(PLAIN, "    ");
    push_visible(&mut line, style, text, true);
    line
}

fn push_visible(line: &mut Line, style: Style, text: &str, mut is_line_start: bool) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let blanks = leading_blanks(rest);
        if blanks > 0 {
            let (run, after) = rest.split_at_checked(blanks).unwrap_or((rest, ""));
            rest = after;
            if blanks > MAX_BLANKS || after.is_empty() {
                line.push(NOTICE, &format!("({})", human::count(blanks, "blank")));
            } else if is_line_start {
                line.push(style, run);
            } else {
                line.push(style, &run.replace('\t', "\u{2409}"));
            }
        } else {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            if looks_blank(c) {
                line.push(NOTICE, &visible(c));
            } else {
                line.push_character(style, c);
            }
        }
        is_line_start = false;
    }
}
