//! Characters that would do something to a terminal rather than be seen on it, or not be seen at all.

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

/// Whether a character cannot be told from a blank or from nothing, which matters where a person decides: also the joiners,
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

/// A text that does nothing to a terminal, whatever stands in it; its lines stay.
pub(crate) fn harmless(text: &str) -> String {
    let mut seen = String::with_capacity(text.len());
    for c in text.chars() {
        if is_invisible(c) && c != '\n' {
            seen.push_str(&visible(c));
        } else {
            seen.push(c);
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::{is_invisible, visible};

    #[test]
    fn what_is_seen() {
        let check = |text: &str, expected: &str| {
            let seen: String = text
                .chars()
                .map(|c| {
                    if is_invisible(c) {
                        visible(c)
                    } else {
                        c.into()
                    }
                })
                .collect();
            assert_eq!(seen, expected, "{text:?}");
        };
        check("a\tb \u{e9}\u{a0}", "a\tb \u{e9}\u{a0}");
        check("\u{1b}[2J\u{7f}\u{9b}", "\u{241b}[2J\u{2421}\\u{9b}");
        check("a\u{202e}b\u{200f}", "a\\u{202e}b\\u{200f}");
        check(
            "a\u{200b}\u{feff}.txt\u{ad}",
            "a\\u{200b}\\u{feff}.txt\\u{ad}",
        );
        check("\u{e0041}", "\\u{e0041}");
        // A family, and a letter of Persian with a joiner between.
        let joined = "\u{1f469}\u{200d}\u{1f467} \u{2764}\u{fe0f} \u{645}\u{6cc}\u{200c}";
        check(joined, joined);
    }
}
