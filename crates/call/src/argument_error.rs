//! What does not fit a type that arguments are read as.

use std::fmt;
use std::fmt::Write as _;

use plaincall_syntax::Span;
use serde::de::{self, Expected, Unexpected};

use crate::pointer::escape;

/// What does not fit, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentError {
    /// The pointer to what is wrong; empty for the arguments as a whole.
    pub pointer: String,
    /// Where it stands in the input, if it stands there. For a part that is missing: where its surroundings stand.
    pub span: Option<Span>,
    /// What is wrong with it.
    pub message: String,
    /// Whether `pointer` begins at the root; else it begins where the error came about.
    is_placed: bool,
}

impl ArgumentError {
    pub(crate) fn at(pointer: &str, span: Option<Span>, message: String) -> Self {
        Self {
            pointer: pointer.to_owned(),
            span,
            message,
            is_placed: true,
        }
    }

    fn here(message: String) -> Self {
        Self::under(String::new(), message)
    }

    fn under(pointer: String, message: String) -> Self {
        Self {
            pointer,
            span: None,
            message,
            is_placed: false,
        }
    }

    /// Puts an error that does not know its place at the place that `find` tells.
    pub(crate) fn or_at<'a>(mut self, find: impl FnOnce() -> (&'a str, Option<Span>)) -> Self {
        if !self.is_placed {
            let (base, span) = find();
            self.pointer = match (base.is_empty(), self.pointer.is_empty()) {
                (true, _) => self.pointer,
                (false, true) => base.to_owned(),
                (false, false) => format!("{base}/{}", self.pointer),
            };
            self.span = span.filter(|span| *span != Span::default());
            self.is_placed = true;
        }
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
        Self::here(message.to_string())
    }

    fn invalid_type(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        let (expected, found) = (expected_in_words(expected), found_in_words(found));
        Self::here(format!("expected {expected}, found {found}"))
    }

    fn invalid_value(found: Unexpected<'_>, expected: &dyn Expected) -> Self {
        Self::invalid_type(found, expected)
    }

    fn invalid_length(length: usize, expected: &dyn Expected) -> Self {
        let expected = expected_in_words(expected);
        Self::here(format!("expected {expected}, found length {length}"))
    }

    fn unknown_variant(variant: &str, expected: &'static [&'static str]) -> Self {
        let expected = list(expected);
        Self::here(format!("expected {expected}, found {}", quoted(variant)))
    }

    fn unknown_field(field: &str, expected: &'static [&'static str]) -> Self {
        let message = format!("not expected here; expected {}", list(expected));
        Self::under(escape(field).into_owned(), message)
    }

    fn missing_field(field: &'static str) -> Self {
        Self::under(escape(field).into_owned(), "it is missing".to_owned())
    }

    fn duplicate_field(field: &'static str) -> Self {
        Self::under(escape(field).into_owned(), "it is given twice".to_owned())
    }
}

/// A text as it stands in a message: in backticks, its beginning only if it is long.
pub(crate) fn quoted(text: &str) -> String {
    const SHOWN: usize = 40;
    let line = text.lines().next().unwrap_or_default();
    let shown = line
        .get(..line.floor_char_boundary(SHOWN))
        .unwrap_or_default();
    let dots = if shown.len() < text.len() { "…" } else { "" };
    if text.is_empty() {
        "nothing".to_owned()
    } else {
        format!("`{shown}{dots}`")
    }
}

/// `one of a, b and c`.
fn list(names: &[&str]) -> String {
    match names.len() {
        0 => "nothing".to_owned(),
        1 => enumerated(names),
        _ => format!("one of {}", enumerated(names)),
    }
}

/// `a, b and c`, each in backticks.
pub(crate) fn enumerated(names: &[impl fmt::Display]) -> String {
    let mut text = String::new();
    for (place, name) in names.iter().enumerate() {
        let separator = match place {
            0 => "",
            _ if place + 1 == names.len() => " and ",
            _ => ", ",
        };
        let _ = write!(text, "{separator}`{name}`");
    }
    text
}

/// What a type expects, without the type's name.
fn expected_in_words(expected: &dyn Expected) -> String {
    let text = expected.to_string();
    for fixed in ["a tuple of size ", "an array of length "] {
        if let Some(length) = text.strip_prefix(fixed) {
            return format!("a list of length {length}");
        }
    }
    let words = match text.as_str() {
        "i8" | "i16" | "i32" | "i64" | "i128" | "u8" | "u16" | "u32" | "u64" | "u128" | "isize"
        | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" | "a bool" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        _ => match text.split_once(' ') {
            Some(("struct", _)) => "an object",
            Some(("tuple", _)) => "a list",
            Some(("enum", _)) => "one of the names it knows",
            Some(("unit", _)) => "null",
            _ => return text,
        },
    };
    words.to_owned()
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
