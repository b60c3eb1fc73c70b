//! Characters that would do something to a terminal rather than be seen on it.

/// Whether a character would move the cursor, change colours or turn the direction of writing.
pub(crate) fn is_invisible(c: char) -> bool {
    let turns_direction = matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    (c.is_control() && c != '\t') || turns_direction
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
