//! How the text of a value becomes JSON.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::coerce::coerce;
use crate::decimal::{Decimal, Integer, Notation};
use crate::json_text;

/// What is known about the type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing: it is read from the text.
    Coerced,
    /// It is a string.
    String,
    /// It is a number.
    Number,
    /// It is a whole number.
    Integer,
    /// It is a boolean.
    Boolean,
    /// It is null.
    Null,
    /// Its text is JSON.
    Json,
}

impl Reading {
    /// The value as JSON. A text that does not fit stays a string.
    pub(crate) fn value(self, text: &str) -> Value {
        self.fitting(text).unwrap_or_else(|| text.into())
    }

    /// The value as JSON, if the text fits.
    pub(crate) fn fitting(self, text: &str) -> Option<Value> {
        match self {
            Self::Coerced => Some(coerce(text).into()),
            Self::String => Some(text.into()),
            Self::Number => number(text),
            Self::Integer => integer(text),
            Self::Boolean => boolean(text).map(Value::from),
            Self::Null => is_null(text).then_some(Value::Null),
            Self::Json => json_text::parse(text).ok(),
        }
    }
}

/// The number that a text is where a number is asked for.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(text.trim_matches(is_blank), Notation::Free)
}

/// The boolean that a text is.
pub(crate) fn boolean(text: &str) -> Option<bool> {
    match text.trim_matches(is_blank) {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}

/// Whether a text is the word `null`.
pub(crate) fn is_null(text: &str) -> bool {
    text.trim_matches(is_blank) == "null"
}

fn integer(text: &str) -> Option<Value> {
    Some(match decimal(text)?.integer()? {
        Integer::Natural(value) => value.into(),
        Integer::Negative(value) => value.into(),
    })
}

/// A number: whole if it is written without a point and is, else a float.
fn number(text: &str) -> Option<Value> {
    let number = decimal(text)?;
    let is_negative_zero = number.negative && number.is_zero();
    if !number.has_point
        && !is_negative_zero
        && let Some(value) = integer(text)
    {
        return Some(value);
    }
    number.float().map(Value::from)
}
