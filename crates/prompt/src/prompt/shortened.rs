//! Descriptions within a limit (`spec/prompt.md` 3.2).

use std::borrow::Cow;
use std::num::NonZeroUsize;

use serde_json::Value;

/// The keywords of a schema whose values are data, not schemas.
const DATA: [&str; 5] = ["const", "default", "enum", "example", "examples"];
/// The keywords of a schema whose members are schemas by name.
const NAMED: [&str; 5] = [
    "$defs",
    "definitions",
    "dependentSchemas",
    "patternProperties",
    "properties",
];

/// Returns a description of at most `length` characters: its beginning up to a white space, and `…`.
pub(super) fn shortened(description: &str, length: Option<NonZeroUsize>) -> Cow<'_, str> {
    let Some(length) = length else {
        return description.into();
    };
    let mut ends = description.char_indices().map(|(at, _)| at);
    // The last character becomes `…`.
    let end = ends.by_ref().nth(length.get() - 1);
    let (Some(end), Some(_)) = (end, ends.next()) else {
        return description.into();
    };
    let begin = description.get(..end).unwrap_or_default();
    let is_in_word = !description
        .get(end..)
        .is_some_and(|rest| rest.starts_with(char::is_whitespace));
    let word_end = begin.rfind(char::is_whitespace).filter(|_| is_in_word);
    // A text without white space, such as Chinese, is truncated anywhere.
    let kept = word_end.filter(|at| *at >= begin.len() / 2);
    let kept = begin.get(..kept.unwrap_or(end)).unwrap_or_default();
    format!("{}…", kept.trim_end()).into()
}

/// Shortens all descriptions in a schema.
pub(super) fn shortened_schema(schema: &mut Value, length: NonZeroUsize) {
    match schema {
        Value::Array(schemas) => {
            for schema in schemas {
                shortened_schema(schema, length);
            }
        }
        Value::Object(keywords) => {
            for (keyword, value) in keywords {
                match value {
                    _ if DATA.contains(&&**keyword) => {}
                    Value::Object(schemas) if NAMED.contains(&&**keyword) => {
                        for (_, schema) in schemas {
                            shortened_schema(schema, length);
                        }
                    }
                    Value::String(text) if keyword == "description" => {
                        if let Cow::Owned(short) = shortened(text, Some(length)) {
                            *text = short;
                        }
                    }
                    _ => shortened_schema(value, length),
                }
            }
        }
        _ => {}
    }
}
