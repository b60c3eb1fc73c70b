//! Formats texts for messages.

/// Formats a text on one line of at most `most` bytes.
#[cfg(feature = "http")]
pub(crate) fn one_line(text: &str, most: usize) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if line.len() > most {
        line.truncate(line.floor_char_boundary(most));
        line.push('…');
    }
    line
}

/// Ends the last line of a text, if it has one.
pub(crate) fn end_line(text: &mut String) {
    if !text.is_empty() && !text.ends_with('\n') {
        text.push('\n');
    }
}

/// Formats a number with a noun: `1 line`, `3 lines`.
pub(crate) fn count(number: impl TryInto<u64>, what: &str) -> String {
    let number = number.try_into().unwrap_or(u64::MAX);
    match what.strip_suffix('y') {
        _ if number == 1 => format!("1 {what}"),
        Some(stem) => format!("{number} {stem}ies"),
        None => format!("{number} {what}s"),
    }
}

/// Whether a character is invisible or changes the display: control, line end and bidirectional characters.
#[cfg(any(feature = "builtin", feature = "mcp"))]
pub(crate) fn is_unseen(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}
