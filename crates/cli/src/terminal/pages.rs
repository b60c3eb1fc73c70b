//! What a call would run, as a person has to see it: all of it, on pages that fit on the terminal, and before that an
//! overview with both ends of each long text.

use anstyle::Style;

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{ASKING, PLAIN};
use crate::terminal::tty::Size;
use crate::terminal::words;
use crate::visible::{is_unseen, visible};

/// So many blanks in a row are counted rather than shown: they could push what follows out of sight.
const BLANKS: usize = 20;
/// The same for lines without text.
const BLANK_LINES: usize = 4;
/// How many characters of one line an overview shows.
const CHARACTERS: usize = 480;
/// How many characters of a line are laid out at once.
const PIECE: usize = 2_000;
/// A page has at least so many rows, however low the terminal is.
const FEW: usize = 3;

/// How much is shown of a list of lines.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Extent {
    Whole,
    /// So many lines, of the beginning and of the end.
    Ends(usize),
}

/// Lines below the head of a question.
#[derive(Debug, Default)]
pub(crate) struct PageText {
    pub(crate) lines: Vec<Line>,
    /// Something was left out.
    pub(crate) is_cut: bool,
}

impl PageText {
    /// Adds these texts, each on a line behind a sign.
    pub(crate) fn add(&mut self, texts: &[(Style, String)], extent: Extent, what: &str) {
        let most = match extent {
            Extent::Ends(most) if texts.len() > most => most,
            _ => return self.add_all(texts, extent),
        };
        let (front, back) = (most - most / 3, most / 3);
        let behind = texts.len() - back;
        self.add_all(texts.get(..front).unwrap_or_default(), extent);
        self.is_cut = true;
        let left_out = words::count(behind - front, "more line");
        let text = format!("({left_out} of the {what})");
        self.lines.push(indented(ASKING, &text));
        self.add_all(texts.get(behind..).unwrap_or_default(), extent);
    }

    fn add_all(&mut self, texts: &[(Style, String)], extent: Extent) {
        let mut texts = texts.iter().peekable();
        while let Some((style, text)) = texts.next() {
            if text.trim().is_empty() {
                let mut blank = 1;
                while texts.next_if(|(_, text)| text.trim().is_empty()).is_some() {
                    blank += 1;
                }
                if blank > BLANK_LINES {
                    let text = format!("({blank} blank lines)");
                    self.lines.push(indented(ASKING, &text));
                } else {
                    let text = seen(*style, text);
                    self.lines.extend(std::iter::repeat_n(text, blank));
                }
            } else {
                self.add_text(*style, text, extent);
            }
        }
    }

    fn add_text(&mut self, style: Style, text: &str, extent: Extent) {
        let length = text.chars().count();
        if matches!(extent, Extent::Ends(_)) && length > CHARACTERS {
            self.is_cut = true;
            let (front, back) = (CHARACTERS - CHARACTERS / 3, CHARACTERS / 3);
            let begin: String = text.chars().take(front).collect();
            let end: String = text.chars().skip(length - back).collect();
            let mut line = seen(style, &begin);
            let more = format!(" ({} more characters) ", length - CHARACTERS);
            line.push(ASKING, &more);
            push_seen(&mut line, style, &end, false);
            self.lines.push(line);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest.char_indices().nth(PIECE);
            let end = end.map_or(rest.len(), |(at, _)| at);
            // A run of blanks is not taken apart.
            let front = rest.get(..end).unwrap_or(rest);
            let end = match front.trim_end_matches(is_blank).len() {
                0 => end + leading_blanks(rest.get(end..).unwrap_or_default()),
                trimmed if end < rest.len() => trimmed,
                _ => end,
            };
            let (piece, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
            self.lines.push(seen(style, piece));
            rest = behind;
        }
    }
}

fn is_blank(c: char) -> bool {
    c == ' ' || c == '\t'
}

fn leading_blanks(text: &str) -> usize {
    text.len() - text.trim_start_matches(is_blank).len()
}

/// Lines on pages. Only the last one may lead to a yes.
pub(crate) fn pages(lines: &[Line], size: Size) -> Vec<Vec<Line>> {
    let rows = rows(lines, size);
    rows.chunks(height(size)).map(<[Line]>::to_vec).collect()
}

/// The overview on one page: what does not fit comes on the pages behind it.
pub(crate) fn overview(lines: &[Line], size: Size) -> Vec<Line> {
    let mut rows = rows(lines, size);
    if rows.len() > height(size) {
        let more = rows.split_off(height(size).saturating_sub(1));
        let more = words::count(more.len(), "line");
        rows.push(indented(ASKING, &format!("({more} more)")));
    }
    rows
}

fn rows(lines: &[Line], size: Size) -> Vec<Line> {
    let width = size.columns.saturating_sub(1).max(1);
    lines.iter().flat_map(|line| line.wrapped(width)).collect()
}

/// How many rows of a question are always visible above its answers.
pub(crate) fn height(size: Size) -> usize {
    (size.rows * 3 / 4).saturating_sub(3).max(FEW)
}

/// A text in which everything can be seen.
fn seen(style: Style, text: &str) -> Line {
    let mut line = Line::of(PLAIN, "    ");
    push_seen(&mut line, style, text, true);
    line
}

fn push_seen(line: &mut Line, style: Style, text: &str, mut is_begin: bool) {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let blanks = leading_blanks(rest);
        if blanks > 0 {
            let (run, behind) = rest.split_at_checked(blanks).unwrap_or((rest, ""));
            rest = behind;
            if blanks > BLANKS || behind.is_empty() {
                line.push(ASKING, &format!("({})", words::count(blanks, "blank")));
            } else if is_begin {
                line.push(style, run);
            } else {
                line.push(style, &run.replace('\t', "\u{2409}"));
            }
        } else {
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            if is_unseen(c) {
                line.push(ASKING, &visible(c));
            } else {
                line.push_character(style, c);
            }
        }
        is_begin = false;
    }
}
