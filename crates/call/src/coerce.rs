//! What a value means where no schema says it.

use plaincall_syntax::is_blank;
use serde_json::Value;

use crate::decimal::{Decimal, Integer, Notation};

/// What a text is as JSON, without a schema. See [`coerce`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Coerced<'t> {
    /// `true` or `false`.
    Boolean(bool),
    /// A whole number from 0 to 2^64-1.
    Natural(u64),
    /// A whole number from -2^63 to -1.
    Negative(i64),
    /// A number with a point, of which no digit is lost.
    Float(f64),
    /// Everything else, exactly as written.
    String(&'t str),
}

impl From<Coerced<'_>> for Value {
    fn from(coerced: Coerced<'_>) -> Self {
        match coerced {
            Coerced::Boolean(value) => value.into(),
            Coerced::Natural(value) => value.into(),
            Coerced::Negative(value) => value.into(),
            Coerced::Float(value) => value.into(),
            Coerced::String(value) => value.into(),
        }
    }
}

/// What a value is without a schema (`spec/block.md` 7.7): a boolean, a number, else a string as written.
///
/// No digit of a number is ever lost: what a 64-bit integer or float cannot hold stays a string.
///
/// ```
/// use plaincall_call::{Coerced, coerce};
///
/// assert_eq!(coerce(" 42 "), Coerced::Natural(42));
/// assert_eq!(coerce("1.50"), Coerced::Float(1.5));
/// assert_eq!(coerce("007"), Coerced::String("007"));
/// assert_eq!(coerce("true\n"), Coerced::String("true\n"));
/// ```
pub fn coerce(text: &str) -> Coerced<'_> {
    scalar(text).unwrap_or(Coerced::String(text))
}

fn scalar(text: &str) -> Option<Coerced<'static>> {
    let word = text.trim_matches(is_blank);
    match word {
        "true" => return Some(Coerced::Boolean(true)),
        "false" => return Some(Coerced::Boolean(false)),
        _ => {}
    }
    let number = Decimal::parse(word, Notation::Plain)?;
    if number.negative && number.is_zero() {
        return None;
    }
    if number.has_point {
        return number.float().map(Coerced::Float);
    }
    Some(match number.integer()? {
        Integer::Natural(value) => Coerced::Natural(value),
        Integer::Negative(value) => Coerced::Negative(value),
    })
}
