//! Conversion of the text of a value to JSON.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::coerce::coerce;
use crate::decimal::{Decimal, Notation, scalar_text};
use crate::json_text;

/// The known type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TextType {
    /// Unknown: the text decides.
    Coerced,
    String,
    /// A string without the blanks and blank lines around it.
    Listed,
    Number,
    Integer,
    Boolean,
    Null,
    /// The text is JSON.
    Json,
}

impl TextType {
    /// Converts the text to JSON. A text that does not match stays a string.
    pub fn value(self, text: &str) -> Value {
        self.fitting(text).unwrap_or_else(|| text.into())
    }

    /// Converts the text to JSON, if it matches where a string is allowed too.
    pub(crate) fn fitting_beside_string(self, text: &str) -> Option<Value> {
        self.fitting(text).filter(|value| is_canonical(value, text))
    }

    /// Converts the text to JSON, if it matches where no string is allowed.
    pub(crate) fn fitting(self, text: &str) -> Option<Value> {
        match self {
            Self::Coerced => Some(coerce(text)),
            Self::String => Some(text.into()),
            Self::Listed => Some(trimmed(text).into()),
            Self::Number => number(text),
            Self::Integer => integer(text),
            Self::Boolean => boolean(text).map(Value::from),
            Self::Null => is_null_or_none(text).then_some(Value::Null),
            Self::Json => json_text::parse(text).ok(),
        }
    }
}

/// Parses a number where no string is allowed.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(line(text), Notation::Free)
}

/// Parses a boolean where no string is allowed.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match line(text) {
        "true" | "True" => Some(true),
        "false" | "False" => Some(false),
        _ => None,
    }
}

pub(crate) fn is_null(text: &str) -> bool {
    text.trim_matches(is_blank) == "null"
}

/// Returns `true` for null where no string is allowed.
pub fn is_null_or_none(text: &str) -> bool {
    matches!(line(text), "null" | "None")
}

/// Returns a text without the blank lines after it and the blanks around it. It may still have several lines.
fn line(text: &str) -> &str {
    let mut line = text.trim_end_matches(is_blank);
    while let Some(above) = line.strip_suffix('\n') {
        let above = above.strip_suffix('\r').unwrap_or(above);
        line = above.trim_end_matches(is_blank);
    }
    line.trim_start_matches(is_blank)
}

/// Returns a text without the blanks and blank lines around it.
pub(crate) fn trimmed(text: &str) -> &str {
    let mut below = line(text);
    while let Some(next) = below.strip_prefix("\r\n").or(below.strip_prefix('\n')) {
        below = next.trim_start_matches(is_blank);
    }
    below
}

fn integer(text: &str) -> Option<Value> {
    // Most integers are written without a point and an exponent.
    if let Ok(integer) = line(text).parse::<i64>() {
        return Some(integer.into());
    }
    decimal(text)?.integer().map(Value::Number)
}

/// Returns `true` if a scalar is written as the renderer writes it. Beside a string, no other text is a scalar.
fn is_canonical(value: &Value, text: &str) -> bool {
    match value {
        Value::Null => is_null(text),
        scalar => scalar_text(scalar).is_some_and(|written| written == text),
    }
}

/// Parses a number: an integer if it has no point and no fraction, otherwise a float.
fn number(text: &str) -> Option<Value> {
    let number = decimal(text)?;
    let is_negative_zero = number.negative && number.is_zero();
    let is_whole = !number.has_point && !is_negative_zero;
    let whole = is_whole.then(|| integer(text)).flatten();
    whole.or_else(|| number.float().map(Value::from))
}
