//! Conversion of values without a schema.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::decimal::{Decimal, Notation};

/// Converts a value without a schema (`spec/block.md` 7.7): to a boolean, a number, or else a string as written.
///
/// Numbers keep all digits: one that a 64-bit integer or float cannot hold stays a string.
///
/// ```
/// use plaincall_tool::json::coerce;
///
/// assert_eq!(coerce(" 42 "), 42);
/// assert_eq!(coerce("1.50"), 1.5);
/// assert_eq!(coerce("007"), "007");
/// ```
pub fn coerce(text: &str) -> Value {
    scalar(text).unwrap_or_else(|| text.into())
}

fn scalar(text: &str) -> Option<Value> {
    let word = text.trim_matches(is_blank);
    match word {
        "true" => return Some(true.into()),
        "false" => return Some(false.into()),
        _ => {}
    }
    let number = Decimal::parse(word, Notation::Plain)?;
    if number.negative && number.is_zero() {
        return None;
    }
    if number.has_point {
        return number.float().map(Value::from);
    }
    number.integer().map(Value::Number)
}
