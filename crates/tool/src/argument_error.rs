//! Errors of converting arguments to a type.

use std::fmt;

use plaincall_syntax::{Span, floor_char_boundary};
use serde::de::{self, Expected, Unexpected};
use serde_json::Value;

use crate::pointer::escape;

/// A value that cannot be converted to the requested type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ArgumentError {
    /// The pointer to the value; empty for the arguments as a whole.
    pub pointer: String,
    /// The location in the input, if it is known. For a missing value, the location of what should contain it.
    pub span: Option<Span>,
    /// The problem.
    pub message: String,
}

impl ArgumentError {
    #[doc(hidden)]
    pub fn at(pointer: &str, message: String) -> Self {
        Self {
            pointer: pointer.to_owned(),
            span: None,
            message,
        }
    }

    /// Prefixes the pointer with `key`, and sets the span if it is not known yet.
    pub(crate) fn inside(mut self, key: &str, span: Option<Span>) -> Self {
        if !self.pointer.is_empty() {
            self.pointer.insert(0, '/');
        }
        self.pointer.insert_str(0, &escape(key));
        self.span = self.span.or(span);
        self
    }
}

impl fmt::Display for ArgumentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            formatter.write_str(&self.message)
        } else {
            write!(formatter, "`{}`: {}", self.pointer, self.message)
        }
    }
}

impl std::error::Error for ArgumentError {}

impl de::Error for ArgumentError {
    fn custom<T: fmt::Display>(message: T) -> Self {
        Self::at("", reworded(message.to_string()))
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (expected, found) = (expected_in_words(expected), found_in_words(found));
        Self::at("", format!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let expected = expected_in_words(expected);
        Self::at("", format!("expected {expected}, found length {length}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let expected = list(expected);
        Self::at(
            "",
            format!("expected {expected}, found {}", quoted(variant)),
        )
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("not expected here; expected {}", list(expected));
        Self::at(&escape(field), message)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::at(&escape(field), "missing".to_owned())
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::at(&escape(field), "duplicate".to_owned())
    }
}

pub fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    let shown = line
        .get(..floor_char_boundary(line, SHOWN))
        .unwrap_or_default();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        format!("`{shown}{dots}`")
    }
}

/// Returns `one of a, b and c`.
fn list(names: &[&str]) -> String {
    match names.len() {
        0 => "nothing".to_owned(),
        1 => enumerated(names),
        _ => format!("one of {}", enumerated(names)),
    }
}

pub(crate) fn enumerated(names: &[impl fmt::Display]) -> String {
    let names: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    joined(&names, "and")
}

/// Joins words with commas, and the last with `before_last`.
pub(crate) fn joined(words: &[String], before_last: &str) -> String {
    match words.split_last() {
        Some((last, others)) if !others.is_empty() => {
            format!("{} {before_last} {last}", others.join(", "))
        }
        _ => words.concat(),
    }
}

pub(crate) fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => quoted(&other.to_string()),
    }
}

/// Returns the expectation of a type without the type's name.
fn expected_in_words(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    // Some expectations end without the type's name.
    let named = format!("{text} ");
    for (kind, words) in KINDS_OF_TYPES {
        if let Some(rest) = named.strip_prefix(kind) {
            return match length(rest) {
                Some(length) if words == "a list" => format!("a list of length {length}"),
                _ => words.to_owned(),
            };
        }
    }
    if let Some((least, most)) = range(&text) {
        return format!("an integer from {least} to {most}");
    }
    let words = match text.as_str() {
        "i128" | "u128" | "integer with support for saturating semantics" => "an integer",
        "f32" | "f64" => "a number",
        "a boolean" | "a bool" => "true or false",
        "a string"
        | "a borrowed string"
        | "path string"
        | "a borrowed path"
        | "os string"
        | "byte array"
        | "a byte array"
        | "a borrowed byte array" => "a string",
        "a sequence" => "a list",
        "an empty array" => "an empty list",
        "a map" => "an object",
        "unit" => "null",
        "option" => "a value or null",
        _ => return text,
    };
    words.to_owned()
}

/// The names of kinds of types in messages of derived code, before the name of the type, and their replacements.
const KINDS_OF_TYPES: [(&str, &str); 16] = [
    ("struct ", "an object"),
    ("tuple struct ", "a list"),
    ("tuple variant ", "a list"),
    ("a tuple of size ", "a list"),
    ("an array of length ", "a list"),
    ("unit struct ", "null"),
    ("unit variant ", "null"),
    ("newtype struct ", "a value"),
    ("newtype variant ", "a value"),
    ("enum ", "a known name"),
    ("variant of enum ", "a known name"),
    ("variant i", "a known name"),
    ("field i", "a name"),
    ("internally tagged enum ", "a tagged object"),
    ("adjacently tagged enum ", "a tagged object"),
    ("a nonzero ", "an integer other than 0"),
];

/// Returns the length in `2` and in `Pair with 2 elements`.
fn length(text: &str) -> Option<usize> {
    let text = text.trim_end();
    let counted = text
        .rsplit_once(" with ")
        .map_or(text, |(_, counted)| counted);
    counted.split(' ').next()?.parse().ok()
}

fn range(name: &str) -> Option<(i128, i128)> {
    let (is_signed, bits) = match name.split_at_checked(1)? {
        ("i", bits) => (true, bits),
        ("u", bits) => (false, bits),
        _ => return None,
    };
    let bits: u32 = match bits {
        "8" | "16" | "32" | "64" => bits.parse().ok()?,
        "size" => usize::BITS,
        _ => return None,
    };
    let half = 1_i128 << (bits - 1);
    Some(if is_signed {
        (-half, half - 1)
    } else {
        (0, half * 2 - 1)
    })
}

/// Rewrites a message of derived code that names types.
fn reworded(message: String) -> String {
    if message.starts_with("data did not match any variant of untagged enum ") {
        "it matches none of the allowed forms".to_owned()
    } else if message.starts_with("no variant of enum ")
        && message.ends_with(" found in flattened data")
    {
        "none of the allowed names is present".to_owned()
    } else {
        message
    }
}

fn found_in_words(found: Unexpected<'_>) -> String {
    match found {
        Unexpected::Bool(value) => format!("`{value}`"),
        Unexpected::Unsigned(value) => format!("`{value}`"),
        Unexpected::Signed(value) => format!("`{value}`"),
        Unexpected::Float(value) => format!("`{value}`"),
        Unexpected::Char(value) => quoted(value.encode_utf8(&mut [0; 4])),
        Unexpected::Str(value) => quoted(value),
        Unexpected::Unit | Unexpected::Option => "null".to_owned(),
        Unexpected::Seq => "a list".to_owned(),
        Unexpected::Map => "an object".to_owned(),
        other => other.to_string(),
    }
}
