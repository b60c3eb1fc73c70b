//! Formats file names for the model.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::path::Path;

use crate::text::is_unseen;

/// The longest name that a message shows in full, in bytes.
const LONGEST: usize = 200;

/// A name in a list, quoted if it has invisible characters.
pub(super) fn spelled(name: impl AsRef<OsStr>) -> String {
    let bytes = name.as_ref().as_encoded_bytes();
    if let Ok(text) = std::str::from_utf8(bytes)
        && is_plain(text)
    {
        return text.to_owned();
    }
    let mut spelled = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' | '\\' => spelled.extend(['\\', character]),
                _ if is_unseen(character) => spelled.extend(character.escape_default()),
                _ => spelled.push(character),
            }
        }
        for byte in chunk.invalid() {
            // Writing to a `String` cannot fail.
            let _ = write!(spelled, "\\x{byte:02X}");
        }
    }
    spelled.push('"');
    spelled
}

/// A name in a sentence.
pub(super) fn named(name: impl AsRef<OsStr>) -> String {
    let spelled = spelled(name);
    let shown = spelled
        .get(..spelled.floor_char_boundary(LONGEST))
        .unwrap_or_default();
    let dots = if shown.len() < spelled.len() {
        "…"
    } else {
        ""
    };
    if spelled.starts_with('"') {
        format!("{shown}{dots}")
    } else {
        format!("`{shown}{dots}`")
    }
}

/// A path in the directory as the model writes it.
pub(super) fn below(prefix: &Path, name: impl AsRef<OsStr>) -> std::path::PathBuf {
    if prefix == Path::new(".") {
        name.as_ref().into()
    } else {
        prefix.join(name.as_ref())
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with([' ', '"'])
        && !text.ends_with(' ')
        && !text.contains('\\')
        && !text.chars().any(is_unseen)
}

/// The notes about a result as its last line; empty without notes.
pub(super) fn last_line(notes: &[String]) -> String {
    if notes.is_empty() {
        String::new()
    } else {
        format!("[{}]\n", notes.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt as _;

    use super::{named, spelled};

    #[test]
    fn names() {
        for (bytes, expected) in [
            (&b"src/main.rs"[..], "src/main.rs"),
            ("grün 🛠.txt".as_bytes(), "grün 🛠.txt"),
            (b"a\nb", "\"a\\nb\""),
            (b" a", "\" a\""),
            (b"a ", "\"a \""),
            (b"", "\"\""),
            (b"\"a\"", "\"\\\"a\\\"\""),
            (b"a\\b", "\"a\\\\b\""),
            (b"a\xffb", "\"a\\xFFb\""),
            ("a\u{202e}b".as_bytes(), "\"a\\u{202e}b\""),
            (b"\x1b[2J", "\"\\u{1b}[2J\""),
        ] {
            assert_eq!(spelled(OsStr::from_bytes(bytes)), expected);
        }
        assert_eq!(named("a"), "`a`");
        assert_eq!(named("a\tb"), "\"a\\tb\"");
        assert_eq!(named("x".repeat(300)), format!("`{}…`", "x".repeat(200)));
    }
}
