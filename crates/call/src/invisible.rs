//! Characters that nobody sees.

/// Whether a character has no width, or only changes how others are shown. In a name it deceives people, and where texts are
/// compared it does not count. Control characters are another matter.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}')
}

/// The error for a name that holds such a character.
pub(crate) fn in_name(name: &str) -> Option<String> {
    let found = name.chars().find(|c| is_invisible(*c))?;
    Some(format!(
        "Invisible character in a name: U+{:04X}",
        u32::from(found)
    ))
}
