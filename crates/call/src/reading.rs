//! How the text of a value becomes JSON.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::coerce::coerce;
use crate::decimal::{Decimal, Notation, scalar_text};
use crate::json_text;

/// What is known about the type of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reading {
    /// Nothing: it is read from the text.
    Coerced,
    String,
    Number,
    Integer,
    Boolean,
    Null,
    /// Its text is JSON.
    Json,
}

impl Reading {
    /// The value as JSON. A text that does not fit stays a string.
    pub(crate) fn value(self, text: &str) -> Value {
        self.fitting(text).unwrap_or_else(|| text.into())
    }

    /// The value as JSON, if the text fits where a string may stand too.
    pub(crate) fn fitting_beside_string(self, text: &str) -> Option<Value> {
        self.fitting(text).filter(|value| is_canonical(value, text))
    }

    /// The value as JSON, if the text fits where no string may stand.
    pub(crate) fn fitting(self, text: &str) -> Option<Value> {
        match self {
            Self::Coerced => Some(coerce(text)),
            Self::String => Some(text.into()),
            Self::Number => number(text),
            Self::Integer => integer(text),
            Self::Boolean => boolean(text).map(Value::from),
            Self::Null => is_null_or_none(text).then_some(Value::Null),
            Self::Json => json_text::parse(text).ok(),
        }
    }
}

/// The number that a text is where no string may stand.
pub(crate) fn decimal(text: &str) -> Option<Decimal> {
    Decimal::parse(line(text), Notation::Free)
}

/// The boolean that a text is where no string may stand.
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

/// Whether a text is null where no string may stand.
pub(crate) fn is_null_or_none(text: &str) -> bool {
    matches!(line(text), "null" | "None")
}

/// A text without the blank lines after it and the blanks around it. It may still have several lines.
fn line(text: &str) -> &str {
    let mut line = text.trim_end_matches(is_blank);
    while let Some(above) = line.strip_suffix('\n') {
        let above = above.strip_suffix('\r').unwrap_or(above);
        line = above.trim_end_matches(is_blank);
    }
    line.trim_start_matches(is_blank)
}

fn integer(text: &str) -> Option<Value> {
    decimal(text)?.integer().map(Value::Number)
}

/// Whether a scalar is written as the renderer writes it: nothing else is one beside a string.
fn is_canonical(value: &Value, text: &str) -> bool {
    match value {
        Value::Null => is_null(text),
        scalar => scalar_text(scalar).is_some_and(|written| written == text),
    }
}

/// A number: whole if it is written without a point and is, else a float.
fn number(text: &str) -> Option<Value> {
    let number = decimal(text)?;
    let is_negative_zero = number.negative && number.is_zero();
    let is_whole = !number.has_point && !is_negative_zero;
    let whole = is_whole.then(|| integer(text)).flatten();
    whole.or_else(|| number.float().map(Value::from))
}
