//! Invisible characters.

/// Returns `true` for characters that have no width or only change how others are shown. Names must not contain them,
/// and comparisons of texts skip them. Control characters are not included.
pub(crate) fn is_invisible(c: char) -> bool {
    matches!(c,
        '\u{AD}' | '\u{34F}' | '\u{61C}' | '\u{115F}' | '\u{1160}' | '\u{17B4}' | '\u{17B5}'
        | '\u{180B}'..='\u{180F}' | '\u{200B}'..='\u{200F}' | '\u{202A}'..='\u{202E}'
        | '\u{2060}'..='\u{206F}' | '\u{3164}' | '\u{FE00}'..='\u{FE0F}' | '\u{FEFF}' | '\u{FFA0}'
        | '\u{FFF0}'..='\u{FFF8}' | '\u{E0000}'..='\u{E0FFF}')
}

pub(crate) fn in_name(name: &str) -> Option<String> {
    let found = name.chars().find(|c| is_invisible(*c))?;
    Some(format!(
        "Invisible character in a name: U+{:04X}",
        u32::from(found)
    ))
}
