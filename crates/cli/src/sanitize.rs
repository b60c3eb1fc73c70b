//! Escaping of characters that are invisible or control the terminal.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Returns whether a character would move the cursor, change colors or the text direction, or has no width, so that
/// different texts look the same. Joiners and variation selectors are allowed, because scripts and emoji need them.
pub(crate) fn is_invisible(c: char) -> bool {
    let changes_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let has_no_width = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    (c.is_control() && c != '\t') || changes_direction || has_no_width
}

/// Returns whether a character looks blank or invisible: also joiners, variation selectors, fillers, and all
/// whitespace except space and tab. Used where a user makes a decision.
pub(crate) fn looks_blank(c: char) -> bool {
    is_invisible(c)
        || (c.is_whitespace() && c != ' ' && c != '\t')
        || matches!(
            c,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200c}' | '\u{200d}' | '\u{2065}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0080}'..='\u{e0fff}'
        )
}

/// Returns a visible form of a control or invisible character.
pub(crate) fn visible(c: char) -> String {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).map(String::from),
        0x7f => Some("\u{2421}".to_owned()),
        _ => None,
    }
    .unwrap_or_else(|| c.escape_unicode().to_string())
}

/// Escapes everything that a terminal would interpret, except line ends.
pub(crate) fn sanitize(text: &str) -> String {
    replace_invisible(text, |c, out| out.push_str(&visible(c))).into_owned()
}

/// Replaces each invisible character, except line ends, by what `write` appends.
fn replace_invisible(text: &str, write: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_hidden = |c| is_invisible(c) && c != '\n';
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            write(c, &mut out);
        } else {
            out.push(c);
        }
    }
    Cow::Owned(out)
}

/// Escapes invisible characters in JSON text without changing its meaning.
pub(crate) fn sanitize_json(text: &str) -> Cow<'_, str> {
    replace_invisible(text, |c, out| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string cannot fail.
            let _ = write!(out, "\\u{unit:04x}");
        }
    })
}

/// Escapes control characters, except for styles and cursor movement. Untrusted text is already [sanitized](sanitize);
/// this is a second safeguard.
pub(crate) fn sanitize_styled(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_invisible(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let sequence = allowed_sequence(rest);
        let (part, after) = rest.split_at(sequence.unwrap_or(c.len_utf8()));
        if sequence.is_some() || !is_invisible(c) || matches!(c, '\n' | '\r' | '\u{8}') {
            out.push_str(part);
        } else {
            out.push_str(&visible(c));
        }
        rest = after;
    }
    Cow::Owned(out)
}

/// Returns the length of a leading escape sequence that this program itself writes: one that sets a style, clears,
/// moves the cursor, or switches a drawing mode.
fn allowed_sequence(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.find(|c: char| !matches!(c, '0'..='9' | ';' | '?'))?;
    let last = inside.get(end..)?.chars().next()?;
    matches!(last, 'm' | 'A' | 'C' | 'J' | 'K' | 'h' | 'l')
        .then_some(text.len() - inside.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::sanitize_styled;

    #[test]
    fn sanitized_terminal_output() {
        for (text, expected) in [
            ("\u{1b}[1;31mred\u{1b}[0m\n", "\u{1b}[1;31mred\u{1b}[0m\n"),
            (
                "\u{1b}[?2026h\r\u{1b}[K\u{1b}[3A",
                "\u{1b}[?2026h\r\u{1b}[K\u{1b}[3A",
            ),
            (
                "\u{1b}]0;x\u{7}\u{9b}1m\u{7f}",
                "\u{241b}]0;x\u{2407}\\u{9b}1m\u{2421}",
            ),
            ("\u{1b}[6n\u{1b}c\u{1b}", "\u{241b}[6n\u{241b}c\u{241b}"),
            ("\u{1b}[\u{9b}m", "\u{241b}[\\u{9b}m"),
        ] {
            assert_eq!(sanitize_styled(text), expected, "{text:?}");
        }
    }
}
