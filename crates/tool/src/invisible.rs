//! Invisible characters in names.

use plaincall_syntax::is_invisible;

pub fn in_name(name: &str) -> Option<String> {
    let found = name.chars().find(|c| is_invisible(*c))?;
    Some(format!(
        "Invisible character in a name: U+{:04X}",
        u32::from(found)
    ))
}
