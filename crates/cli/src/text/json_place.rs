//! Where something stands in a JSON text.

use std::collections::HashMap;
use std::ops::Range;

use serde_json::value::RawValue;

/// Where in a text the value stands that a JSON Pointer names; if the pointer leads nowhere, the value that it leaves.
pub(crate) fn place_of(text: &str, pointer: &str) -> Range<usize> {
    let whole = text.trim_ascii();
    let mut found = whole;
    for segment in pointer.split('/').skip(1) {
        let key = segment.replace("~1", "/").replace("~0", "~");
        let Some(below) = member(found, &key) else {
            break;
        };
        found = below;
    }
    // What was found is a slice of the text, so the distance of the two is its place.
    let start = found.as_ptr().addr() - text.as_ptr().addr();
    start..start + found.len()
}

/// The text of a member of an object or an item of a list.
fn member<'t>(value: &'t str, key: &str) -> Option<&'t str> {
    if value.starts_with('[') {
        let items: Vec<&RawValue> = serde_json::from_str(value).ok()?;
        return Some(items.get(key.parse::<usize>().ok()?)?.get());
    }
    let members: HashMap<String, &RawValue> = serde_json::from_str(value).ok()?;
    Some(members.get(key)?.get())
}

/// The character at a line and a column, both from 1, the column in bytes, as readers of JSON count them.
pub(crate) fn character_at(text: &str, line: usize, column: usize) -> Range<usize> {
    let mut ends = memchr::memchr_iter(b'\n', text.as_bytes());
    let line_start = match line {
        0 | 1 => 0,
        line => ends.nth(line - 2).map_or(text.len(), |at| at + 1),
    };
    let at = (line_start + column.saturating_sub(1)).min(text.len());
    let at = text.floor_char_boundary(at);
    let rest = text.get(at..).unwrap_or_default();
    at..at + rest.chars().next().map_or(0, char::len_utf8)
}

/// What keeps a text from being JSON, in words, and where.
pub(crate) fn no_json(error: &serde_json::Error) -> String {
    format!(
        "line {}, column {}: {}",
        error.line(),
        error.column(),
        cause(error)
    )
}

/// The same without the place.
pub(crate) fn cause(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let place = format!(" at line {} column {}", error.line(), error.column());
    let cause = text.strip_suffix(&place).unwrap_or(&text);
    match cause.strip_prefix("EOF while parsing ") {
        Some(part) => format!("it ends inside {part}"),
        None => cause.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::{character_at, place_of};

    fn check(text: &str, pointer: &str, expected: &str) {
        assert_eq!(&text[place_of(text, pointer)], expected, "{pointer}");
    }

    #[test]
    fn places() {
        let text = " {\"tools\": [ {\"name\": \"a b\"}, {\"a/b~c\": [1, {\"x\":2}]} ]}\n";
        check(text, "", text.trim());
        check(text, "/tools/0/name", "\"a b\"");
        check(text, "/tools/1/a~1b~0c/1/x", "2");
        check(text, "/tools/0/function/name", "{\"name\": \"a b\"}");
        check(
            text,
            "/tools/7",
            "[ {\"name\": \"a b\"}, {\"a/b~c\": [1, {\"x\":2}]} ]",
        );
        check("5", "/x", "5");
        check("", "/x", "");
    }

    #[test]
    fn characters() {
        let text = "ab\ncéd\n";
        for (line, column, expected) in [
            (1, 1, 0..1),
            (1, 3, 2..3),
            (2, 1, 3..4),
            (2, 2, 4..6),
            (2, 3, 4..6),
            (2, 4, 6..7),
            (3, 1, 8..8),
            (3, 0, 8..8),
            (9, 9, 8..8),
            (0, 0, 0..1),
        ] {
            assert_eq!(
                character_at(text, line, column),
                expected,
                "{line}:{column}"
            );
        }
    }
}
