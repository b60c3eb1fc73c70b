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
    /// All of it.
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
        let left_out = words::count(behind - front, "line");
        let text = format!("({left_out} more of the {what})");
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
                    self.lines
                        .push(indented(ASKING, &format!("({blank} blank lines)")));
                } else {
                    let text = seen(*style, text);
                    self.lines.extend((0..blank).map(|_| text.clone()));
                }
                continue;
            }
            self.add_text(*style, text, extent);
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
            line.push(
                ASKING,
                &format!(" ({} characters more) ", length - CHARACTERS),
            );
            push_seen(&mut line, style, &end, false);
            self.lines.push(line);
            return;
        }
        let mut rest = text;
        while !rest.is_empty() {
            let end = rest
                .char_indices()
                .nth(PIECE)
                .map_or(rest.len(), |(at, _)| at);
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
    let rows: Vec<Line> = lines
        .iter()
        .flat_map(|line| line.wrapped(width(size)))
        .collect();
    let pages = rows.chunks(height(size)).map(<[Line]>::to_vec);
    pages.collect()
}

/// The overview on one page: what does not fit comes on the pages behind it.
pub(crate) fn overview(lines: &[Line], size: Size) -> Vec<Line> {
    let rows: Vec<Line> = lines
        .iter()
        .flat_map(|line| line.wrapped(width(size)))
        .collect();
    let room = height(size);
    if rows.len() <= room {
        return rows;
    }
    let mut shown: Vec<Line> = rows.iter().take(room.saturating_sub(1)).cloned().collect();
    let more = words::count(rows.len() - shown.len(), "line");
    shown.push(indented(ASKING, &format!("({more} more)")));
    shown
}

/// How many rows of a question are in sight above its answers, whatever else is on the screen.
pub(crate) fn height(size: Size) -> usize {
    (size.rows * 3 / 4).saturating_sub(3).max(FEW)
}

fn width(size: Size) -> usize {
    size.columns.saturating_sub(1).max(1)
}

/// A text in which everything can be seen.
fn seen(style: Style, text: &str) -> Line {
    let mut line = Line::of(PLAIN, "    ");
    push_seen(&mut line, style, text, true);
    line
}

fn push_seen(line: &mut Line, style: Style, text: &str, is_begin: bool) {
    let mut rest = text;
    let mut is_begin = is_begin;
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
                let run = run.replace('\t', "\u{2409}");
                line.push(style, &run);
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

#[cfg(test)]
mod tests {
    use super::{Extent, PageText, overview, pages};
    use crate::terminal::line::Line;
    use crate::terminal::palette::PLAIN;
    use crate::terminal::tty::Size;

    fn plain(lines: &[Line]) -> Vec<String> {
        lines
            .iter()
            .map(|line| line.to_plain().trim_start().to_owned())
            .collect()
    }

    fn listing(text: &str, extent: Extent) -> PageText {
        let texts: Vec<_> = text
            .split('\n')
            .map(|text| (PLAIN, text.to_owned()))
            .collect();
        let mut listing = PageText::default();
        listing.add(&texts, extent, "text");
        listing
    }

    #[test]
    fn everything_can_be_seen() {
        for (text, expected) in [
            ("a b", "a b"),
            ("rm\tx", "rm\u{2409}x"),
            ("ls\u{a0}x", "ls\\u{a0}x"),
            ("a\u{200d}b\u{200c}", "a\\u{200d}b\\u{200c}"),
            ("\u{3164}\u{2800}", "\\u{3164}\\u{2800}"),
            ("a\u{fe0f}", "a\\u{fe0f}"),
            ("\u{1b}[2J\u{9b}1m\r", "\u{241b}[2J\\u{9b}1m\u{240d}"),
            ("\u{202e}x", "\\u{202e}x"),
            ("a ", "a(1 blank)"),
            ("a\t\t", "a(2 blanks)"),
            (
                &format!("ls{}; rm -rf x", " ".repeat(300)),
                "ls(300 blanks); rm -rf x",
            ),
            (&format!("{}x", " ".repeat(21)), "(21 blanks)x"),
            (
                &format!("ls{}rm", " \t".repeat(2_500)),
                "ls|(5000 blanks)|rm",
            ),
            (&format!("a{}b", "\n".repeat(9)), "a|(8 blank lines)|b"),
            ("a\n\nb", "a||b"),
        ] {
            let listing = listing(text, Extent::Whole);
            assert_eq!(plain(&listing.lines).join("|"), expected, "{text:?}");
            assert!(!listing.is_cut);
        }
    }

    #[test]
    fn both_ends_of_what_is_long() {
        let lines: Vec<String> = (1..=30).map(|number| number.to_string()).collect();
        let text = lines.join("\n");
        let found = listing(&text, Extent::Ends(6));
        assert_eq!(
            plain(&found.lines).join(" "),
            "1 2 3 4 (24 lines more of the text) 29 30"
        );
        assert!(found.is_cut);
        let text = format!("begin{}end", "x".repeat(600));
        let found = listing(&text, Extent::Ends(6));
        let [line] = plain(&found.lines).try_into().unwrap();
        assert!(
            line.starts_with("beginxx") && line.ends_with("xxend"),
            "{line}"
        );
        assert!(line.contains(" (128 characters more) "), "{line}");
        assert!(found.is_cut);
        assert!(!listing("short\ntoo", Extent::Ends(6)).is_cut);
    }

    #[test]
    fn pages_hold_everything() {
        let size = Size {
            columns: 20,
            rows: 12,
        };
        let numbers: Vec<String> = (0..500).map(|number| format!("<{number}> ")).collect();
        let text = numbers.concat();
        let text = format!("{text}\n{}", text.replace(' ', ""));
        let listing = listing(&text, Extent::Whole);
        let pages = pages(&listing.lines, size);
        assert!(pages.iter().all(|page| page.len() <= 6), "{}", pages.len());
        let shown: String = pages.iter().flat_map(|page| plain(page)).collect();
        for number in 0..500 {
            assert_eq!(shown.matches(&format!("<{number}>")).count(), 2, "{number}");
        }
        assert!(pages.iter().flatten().all(|row| row.width() < 20));
        let overview = overview(&listing.lines, size);
        assert_eq!(overview.len(), 6);
        assert!(plain(&overview)[5].contains("lines more"));
    }
}
