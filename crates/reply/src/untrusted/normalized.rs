//! Normalized texts for the detection of echoes (`spec/untrusted.md` 4).

use plaincall_syntax::{floor_char_boundary, is_invisible};

/// A normalized text.
#[derive(Debug, Default)]
pub(crate) struct Normalized {
    /// A blank separates two characters of words, where the text has a blank or something else that is removed.
    pub(crate) text: String,
    /// For each line of the original text: the length of the normalized text before it, without separators, and its offset.
    pub(crate) lines: Vec<(usize, usize)>,
    /// The length of the text without separators.
    len: usize,
    /// Whether a blank precedes the next character.
    is_behind_blank: bool,
}

/// How the lines of a text are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lines {
    /// With all their text.
    Whole,
    /// Without numbers, signs and paths at their beginning, so that a word that was wrapped is one word again.
    WithoutPrefixes,
}

impl Normalized {
    /// Normalizes an untrusted text. Removed text that could contain a call follows the last line.
    pub(crate) fn of_text(text: &str, lines: Lines) -> Self {
        let mut normalized = Self::default();
        let mut aside = String::new();
        let (mut begin, mut aside_begin) = (0, None);
        for raw in text.split_inclusive('\n') {
            normalized.lines.push((normalized.len, begin));
            normalized.push_lines(raw, lines, &mut aside);
            if !aside.is_empty() {
                aside_begin.get_or_insert(begin);
            }
            begin += raw.len();
        }
        if let Some(begin) = aside_begin {
            normalized.lines.push((normalized.len, begin));
            normalized.push_line(&aside);
        }
        normalized
    }

    /// Normalizes a part of a call.
    pub(crate) fn of_call(text: &str) -> Self {
        let mut normalized = Self::default();
        for raw in text.split_inclusive('\n') {
            normalized.push_lines(raw, Lines::Whole, &mut String::new());
        }
        normalized
    }

    fn push_lines(&mut self, raw: &str, lines: Lines, aside: &mut String) {
        let decoded: String = decoded(raw).collect();
        for line in cleaned(&decoded, aside).split('\n') {
            self.push_line(match lines {
                Lines::Whole => line,
                Lines::WithoutPrefixes => without_prefixes(line),
            });
        }
    }

    fn push_line(&mut self, line: &str) {
        self.is_behind_blank = false;
        for c in line.chars() {
            if c == '\n' || c == ' ' || c.is_control() {
                self.is_behind_blank = true;
                continue;
            }
            // The quotes of CSV and SQL are doubled.
            if matches!(c, '"' | '\'') && self.text.ends_with(c) {
                continue;
            }
            if self.is_behind_blank && is_word(c) && self.text.ends_with(is_word) {
                self.text.push(' ');
            }
            self.is_behind_blank = false;
            self.text.push(c);
            self.len += c.len_utf8();
        }
        if !self.text.is_empty() && !self.text.ends_with('\n') {
            self.text.push('\n');
        }
    }
}

/// The characters that begin a control sequence of a terminal, and that end a command of an operating system in one.
const ESCAPE: char = '\u{1B}';
const COMMAND_END: char = '\u{9C}';

/// Scripts without blanks between words have no word boundaries either.
fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// The signs of quoted and changed lines and after numbers, and those of items and comments.
const SIGNS: &[char] = &['>', '|', '+', ':', ')', ' '];
const SIGNS_BEFORE_BLANK: &[char] = &['-', '*', '#', '/', ';', '.'];
/// The maximum length of a path before a line, in bytes.
const LONGEST_PATH: usize = 256;

/// Removes numbers, signs and paths at the beginning of a line, unless nothing else is in it.
fn without_prefixes(line: &str) -> &str {
    // A search in the output of a search has two paths.
    let rest = (0..3).fold(line, |rest, _| {
        let rest = without_signs(rest);
        without_path(rest).unwrap_or(rest)
    });
    let rest = without_signs(rest);
    if rest.is_empty() { line } else { rest }
}

fn without_signs(line: &str) -> &str {
    let mut rest = line;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_digit() || SIGNS.contains(&c));
        let behind = rest.trim_start_matches(SIGNS_BEFORE_BLANK);
        // Without a blank, the signs may belong to the text, such as `--force`.
        if behind.len() == rest.len() || !behind.starts_with(' ') {
            return rest;
        }
        rest = behind;
    }
}

/// Removes a path and the number between two signs after it.
fn without_path(line: &str) -> Option<&str> {
    let near = line.get(..floor_char_boundary(line, LONGEST_PATH))?;
    let word = near.split([' ', '"', '\'', '{', '(']).next()?;
    word.match_indices([':', '-']).find_map(|(at, sign)| {
        let number = line.get(at + 1..)?;
        let behind = number.trim_start_matches(|c: char| c.is_ascii_digit());
        let is_number = behind.len() < number.len();
        behind.strip_prefix(sign).filter(|_| is_number)
    })
}

/// The tags of a page that may be inside a word.
const INLINE_TAGS: &[&str] = &[
    "a", "abbr", "b", "big", "br", "cite", "code", "del", "em", "font", "i", "ins", "kbd", "mark",
    "q", "s", "samp", "small", "span", "strong", "sub", "sup", "tt", "u", "var", "wbr",
];

/// The maximum length of a tag, a command and a sequence of a terminal, in bytes.
const LONGEST_TAG: usize = 512;
const LONGEST_COMMAND: usize = 4096;
const LONGEST_SEQUENCE: usize = 64;

/// Removes control sequences of terminals and tags inside words. What a sequence or a tag contains is added to `aside`, because a call could be in it.
fn cleaned(line: &str, aside: &mut String) -> String {
    let mut cleaned = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find([ESCAPE, '\u{9B}', '\u{9D}', '<']) {
        let (before, found) = rest.split_at_checked(at).unwrap_or((rest, ""));
        cleaned.push_str(before);
        let removed = sequence(found).or_else(|| tag(found));
        rest = if let Some((content, behind)) = removed {
            if !content.is_empty() {
                aside.push_str(content);
                aside.push('\n');
            }
            cleaned.push(' ');
            behind
        } else {
            let mut chars = found.chars();
            cleaned.extend(chars.next());
            chars.as_str()
        };
    }
    cleaned.push_str(rest);
    cleaned
}

/// Returns what an operating system command of a terminal contains (nothing of another control sequence), and the text after it.
fn sequence(text: &str) -> Option<(&str, &str)> {
    let escaped = |kind| text.strip_prefix(ESCAPE)?.strip_prefix(kind);
    if let Some(command) = escaped(']').or_else(|| text.strip_prefix('\u{9D}')) {
        let near = command.get(..floor_char_boundary(command, LONGEST_COMMAND))?;
        let end = near.find(['\u{7}', COMMAND_END, '\n'])?;
        let (content, behind) = command.split_at_checked(end)?;
        let behind = behind.strip_prefix(['\u{7}', COMMAND_END])?;
        return Some((content, behind));
    }
    let codes = escaped('[').or_else(|| text.strip_prefix('\u{9B}'))?;
    let end = codes.find(|c: char| !matches!(c, ' '..='?'))?;
    let behind = codes.get(end..).filter(|_| end < LONGEST_SEQUENCE)?;
    let behind = behind.strip_prefix(|c: char| matches!(c, '@'..='~'))?;
    Some(("", behind))
}

/// Returns the attributes of an inline tag, and the text after it.
fn tag(text: &str) -> Option<(&str, &str)> {
    let begun = text.strip_prefix('<')?;
    let begun = begun.strip_prefix('/').unwrap_or(begun);
    let len = begun.find(|c: char| !c.is_ascii_alphanumeric())?;
    let (name, behind) = begun.split_at_checked(len)?;
    if !INLINE_TAGS.contains(&name) || !behind.starts_with([' ', '/', '>']) {
        return None;
    }
    let end = behind
        .find(['<', '>', '\n'])
        .filter(|end| *end < LONGEST_TAG)?;
    let (content, behind) = behind.split_at_checked(end)?;
    let content = content.trim_matches([' ', '/']);
    Some((content, behind.strip_prefix('>')?))
}

/// Returns the relevant characters in one spelling: line ends become LF, blanks a space. JSON escapes are decoded.
fn decoded(text: &str) -> impl Iterator<Item = char> {
    let mut chars = text.chars().filter_map(visible);
    let (mut is_behind_escape, mut slashes) = (false, 0);
    std::iter::from_fn(move || {
        loop {
            let c = match chars.next()? {
                '\\' if is_behind_escape => {
                    // JSON doubles the backslash as often as that of the escape character before it.
                    for _ in 1..2 * slashes {
                        let mut ahead = chars.clone();
                        if ahead.next() == Some('\\') {
                            chars = ahead;
                        }
                    }
                    Some(COMMAND_END)
                }
                '\\' => {
                    slashes += 1;
                    unescaped(&mut chars)
                }
                c => Some(c),
            };
            is_behind_escape = c == Some(ESCAPE);
            if c.is_some() && !is_behind_escape {
                slashes = 0;
            }
            if let Some(c) = c.and_then(normalized_char) {
                return Some(c);
            }
        }
    })
}

/// Decodes a backslash and the text after it; `None` if it is removed.
fn unescaped(chars: &mut (impl Iterator<Item = char> + Clone)) -> Option<char> {
    let mut ahead = chars.clone();
    let c = match ahead.next()? {
        'n' | 'r' => '\n',
        't' => ' ',
        'u' => code_unit(&mut ahead).and_then(|unit| code_point(unit, &mut ahead))?,
        _ => return None,
    };
    *chars = ahead;
    Some(c)
}

fn code_unit(chars: &mut impl Iterator<Item = char>) -> Option<u32> {
    (0..4).try_fold(0, |unit, _| Some(unit << 4 | chars.next()?.to_digit(16)?))
}

/// Decodes a code unit, and the second one of a surrogate pair.
fn code_point(unit: u32, chars: &mut impl Iterator<Item = char>) -> Option<char> {
    if !(0xD800..0xDC00).contains(&unit) {
        return char::from_u32(unit);
    }
    // A doubly escaped text has more backslashes.
    let second = chars.find(|c| *c != '\\').filter(|c| *c == 'u');
    let low = second.and_then(|_| code_unit(chars))?;
    let low = low.checked_sub(0xDC00).filter(|low| *low < 0x400)?;
    char::from_u32(0x1_0000 + (unit - 0xD800) * 0x400 + low)
}

/// Maps a look-alike to its ASCII character; `None` for invisible characters.
fn visible(c: char) -> Option<char> {
    let from = |first: char, to: char| {
        let code = u32::from(c).checked_sub(u32::from(first))?;
        char::from_u32(u32::from(to) + code)
    };
    match c {
        // Tag characters.
        '\u{E0020}'..='\u{E007E}' => from('\u{E0020}', ' '),
        // Full-width forms.
        '\u{FF01}'..='\u{FF5E}' => from('\u{FF01}', '!'),
        c => (!is_invisible(c)).then_some(c),
    }
}

/// Returns the normalized character; `None` for an invisible one.
fn normalized_char(c: char) -> Option<char> {
    match visible(c)? {
        // Characters that readers, including models, take for a line end.
        '\n' | '\r' | '\u{B}' | '\u{C}' | '\u{85}' | '\u{2028}' | '\u{2029}' => Some('\n'),
        c if c.is_whitespace() => Some(' '),
        c => Some(c.to_ascii_lowercase()),
    }
}
