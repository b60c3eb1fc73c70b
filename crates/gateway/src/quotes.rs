//! What the untrusted texts of a conversation hold that looks like a call.

use std::slice;

use plaincall_call::{EchoGuard, Foreign, ToolCall};
use plaincall_syntax::{Dialect, near_misses};

/// Behind these a line may begin: a text in quotes, or one that is quoted as mail and Markdown do it.
const MARKS: [char; 5] = ['"', '\'', '`', '>', '|'];

/// What untrusted texts hold that looks like a call. The model may quote it, and is not asked to make a call of it.
#[derive(Debug, Default)]
pub(crate) struct Quotes {
    any: bool,
}

impl Quotes {
    pub(crate) fn of<'t>(texts: impl Iterator<Item = &'t str>, dialect: &Dialect) -> Self {
        Self {
            any: hold_quotes(texts, dialect),
        }
    }

    /// Whether the header of this call appears in one of the texts.
    pub(crate) fn hold_call(&self, _call: &ToolCall) -> bool {
        self.any
    }

    /// Whether what looks like a call in this reply appears in one of the texts.
    pub(crate) fn hold_near_miss(&self, _reply: &str) -> bool {
        self.any
    }
}

/// Whether one of these texts holds something that looks like a call, in the words of a page as in those of a user.
fn hold_quotes<'t>(texts: impl Iterator<Item = &'t str>, dialect: &Dialect) -> bool {
    let Ok(guard) = EchoGuard::new(slice::from_ref(dialect)) else {
        return true;
    };
    let mut lines = String::new();
    for text in texts {
        if guard.what_counts(&Foreign::new(text)).is_some() {
            return true;
        }
        unquote(text, &mut lines);
    }
    near_misses(&lines, dialect).map_or(true, |near| !near.is_empty())
}

/// Adds a text as the lines of which it may be made: they may stand in JSON, in quotes or behind marks of quoting, and a
/// near miss counts at the beginning of a line.
fn unquote(text: &str, lines: &mut String) {
    lines.reserve(text.len() + 1);
    lines.push('\n');
    let mut rest = text;
    loop {
        if lines.ends_with('\n') {
            rest = rest.trim_start();
        }
        let plain = rest.find(|c| MARKS.contains(&c) || matches!(c, '\\' | '\n' | '\r'));
        let (before, behind) = rest.split_at(plain.unwrap_or(rest.len()));
        lines.push_str(before);
        let mut behind = behind.chars();
        match behind.next() {
            None => return,
            Some('\\') => {
                let (read, length) = escape(behind.as_str());
                add(read, lines);
                rest = behind.as_str().get(length..).unwrap_or_default();
            }
            Some(mark) => {
                add(mark, lines);
                rest = behind.as_str();
            }
        }
    }
}

/// Adds a character; no blanks at the beginning of a line.
fn add(read: char, lines: &mut String) {
    if MARKS.contains(&read) || matches!(read, '\n' | '\r') {
        lines.push('\n');
    } else if !(read.is_whitespace() && lines.ends_with('\n')) {
        lines.push(read);
    }
}

/// What a backslash means with what stands behind it, as JSON has it, and how many bytes of that belong to it.
fn escape(behind: &str) -> (char, usize) {
    match behind.bytes().next() {
        Some(b'n' | b'r') => return ('\n', 1),
        Some(b't') => return (' ', 1),
        Some(b'u') => {}
        _ => return ('\\', 0),
    }
    let code = behind.get(1..5);
    let code = code.and_then(|digits| u32::from_str_radix(digits, 16).ok());
    match code.and_then(char::from_u32) {
        Some(read) => (read, 5),
        None => ('\\', 0),
    }
}
