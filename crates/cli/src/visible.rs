//! Characters that would do something to a terminal rather than be seen on it, or not be seen at all.

use std::borrow::Cow;
use std::fmt::Write as _;

/// Whether a character would move the cursor, change colours or turn the direction of writing, or takes no place, so that
/// two texts look the same that are not. The joiners and the variation selectors stay: scripts and emoji need them.
pub(crate) fn is_invisible(c: char) -> bool {
    let turns_direction = matches!(
        c,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    let takes_no_place = matches!(
        c,
        '\u{ad}' | '\u{180e}' | '\u{200b}' | '\u{2028}' | '\u{2029}' | '\u{2060}'..='\u{2064}'
            | '\u{206a}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}'
    );
    (c.is_control() && c != '\t') || turns_direction || takes_no_place
}

/// Whether a character looks like a blank or like nothing, which matters where the user decides: also the joiners,
/// variation selectors, fillers, and all blanks but the usual one.
pub(crate) fn is_unseen(c: char) -> bool {
    is_invisible(c)
        || (c.is_whitespace() && c != ' ' && c != '\t')
        || matches!(
            c,
            '\u{34f}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}' | '\u{180b}'..='\u{180f}'
                | '\u{200c}' | '\u{200d}' | '\u{2065}' | '\u{2800}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}'
                | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{e0080}'..='\u{e0fff}'
        )
}

/// Such a character as it can be seen.
pub(crate) fn visible(c: char) -> String {
    match u32::from(c) {
        code @ 0..0x20 => char::from_u32(0x2400 + code).map(String::from),
        0x7f => Some("\u{2421}".to_owned()),
        _ => None,
    }
    .unwrap_or_else(|| c.escape_unicode().to_string())
}

/// Escapes everything in a text that a terminal would interpret; its lines stay.
pub(crate) fn harmless(text: &str) -> String {
    shown(text, |c, seen| seen.push_str(&visible(c))).into_owned()
}

/// A text in which `show` writes each character that cannot be seen, but for line ends.
fn shown(text: &str, show: impl Fn(char, &mut String)) -> Cow<'_, str> {
    let is_hidden = |c| is_invisible(c) && c != '\n';
    if !text.contains(is_hidden) {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        if is_hidden(c) {
            show(c, &mut seen);
        } else {
            seen.push(c);
        }
    }
    Cow::Owned(seen)
}

/// JSON of the same meaning, with all such characters escaped.
pub(crate) fn json(text: &str) -> Cow<'_, str> {
    shown(text, |c, seen| {
        for unit in c.encode_utf16(&mut [0; 2]) {
            // Writing to a string does not fail.
            let _ = write!(seen, "\\u{unit:04x}");
        }
    })
}

/// Escapes control characters, except for styles and cursor movement. Untrusted text is already [harmless]; this is a second
/// safeguard.
pub(crate) fn guarded(text: &str) -> Cow<'_, str> {
    if !text.contains(|c| is_invisible(c) && c != '\n') {
        return Cow::Borrowed(text);
    }
    let mut seen = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let own = own_sequence(rest);
        let (part, behind) = rest.split_at(own.unwrap_or(c.len_utf8()));
        if own.is_some() || !is_invisible(c) || matches!(c, '\n' | '\r' | '\u{8}') {
            seen.push_str(part);
        } else {
            seen.push_str(&visible(c));
        }
        rest = behind;
    }
    Cow::Owned(seen)
}

/// The length of a sequence at the beginning that this command itself writes: it sets a style, clears, moves the cursor, or
/// switches a mode of drawing.
fn own_sequence(text: &str) -> Option<usize> {
    let inside = text.strip_prefix("\u{1b}[")?;
    let end = inside.find(|c: char| !matches!(c, '0'..='9' | ';' | '?'))?;
    let last = inside.get(end..)?.chars().next()?;
    matches!(last, 'm' | 'A' | 'C' | 'J' | 'K' | 'h' | 'l')
        .then_some(text.len() - inside.len() + end + 1)
}

#[cfg(test)]
mod tests {
    use super::guarded;

    #[test]
    fn what_goes_to_a_terminal() {
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
            assert_eq!(guarded(text), expected, "{text:?}");
        }
    }
}
