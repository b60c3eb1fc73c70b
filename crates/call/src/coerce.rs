//! What a value means where no schema says it.

use std::fmt;

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

/// Why [`coerce`] leaves a text a string. It shows itself as the end of a sentence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WhyText {
    /// Nothing stands there.
    Empty,
    /// Nothing but blanks stands there.
    Blank,
    /// It holds a line end.
    LineEnd,
    /// It is the word `null`.
    Null,
    /// It may be the JSON of a list or an object.
    Json,
    /// It is `true` or `false` in other letters.
    Capitals,
    /// It is a number with a plus sign.
    Plus,
    /// It is a number with a leading zero.
    LeadingZero,
    /// It is a number with an exponent.
    Exponent,
    /// It is zero with a minus sign.
    MinusZero,
    /// It is a number with more digits than 64 bits keep.
    Digits,
    /// It is a word.
    Word,
}

impl WhyText {
    /// Why a text that is one stays one.
    pub(crate) fn of(text: &str) -> Self {
        let word = text.trim_matches(is_blank);
        if text.contains('\n') {
            return Self::LineEnd;
        }
        match word {
            "" if text.is_empty() => return Self::Empty,
            "" => return Self::Blank,
            "null" => return Self::Null,
            _ if word.starts_with(['[', '{']) => return Self::Json,
            _ if word.eq_ignore_ascii_case("true") || word.eq_ignore_ascii_case("false") => {
                return Self::Capitals;
            }
            _ => {}
        }
        let unsigned = word.strip_prefix('-').unwrap_or(word);
        let is_number = |text: &str| {
            let digits: Vec<&str> = text.split('.').collect();
            let are_digits =
                |part: &&str| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            digits.len() < 3 && digits.iter().all(are_digits)
        };
        let (mantissa, power) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, power)) => (mantissa, Some(power)),
            None => (unsigned, None),
        };
        let has_leading_zero = || {
            let mut bytes = mantissa.bytes();
            bytes.next() == Some(b'0') && bytes.next().is_some_and(|byte| byte.is_ascii_digit())
        };
        match (power, word.strip_prefix('+')) {
            (_, Some(number)) if is_number(number) => Self::Plus,
            (Some(power), _) if is_number(mantissa) => {
                let digits = power.strip_prefix(['+', '-']).unwrap_or(power);
                if digits.contains('.') || !is_number(digits) {
                    Self::Word
                } else {
                    Self::Exponent
                }
            }
            _ if !is_number(unsigned) => Self::Word,
            _ if has_leading_zero() => Self::LeadingZero,
            _ if !unsigned.contains(|c| matches!(c, '1'..='9')) => Self::MinusZero,
            _ => Self::Digits,
        }
    }
}

impl fmt::Display for WhyText {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "it is empty",
            Self::Blank => "it is nothing but blanks",
            Self::LineEnd => "it holds a line end",
            Self::Null => "`null` is null only where a schema allows it",
            Self::Json => "JSON text is read only where a schema asks for it",
            Self::Capitals => "only `true` and `false` in small letters are booleans",
            Self::Plus => "it has a plus sign",
            Self::LeadingZero => "it has a leading zero",
            Self::Exponent => "it has an exponent",
            Self::MinusZero => "it is zero with a minus sign",
            Self::Digits => "as a number it would lose digits",
            Self::Word => "it is neither a number nor `true` or `false`",
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::{WhyText, coerce};

    #[test]
    fn why_texts_stay_texts() {
        let check = |text: &str, expected: WhyText| {
            assert!(Value::from(coerce(text)).is_string(), "{text:?}");
            assert_eq!(WhyText::of(text), expected, "{text:?}");
        };
        for (expected, texts) in [
            (WhyText::Empty, &[""][..]),
            (WhyText::Blank, &[" ", "\t "]),
            (WhyText::LineEnd, &["5\n", "1\n2", "\n", "true\r\n"]),
            (WhyText::Null, &["null", " null "]),
            (WhyText::Json, &["[]", " {}", "[1"]),
            (WhyText::Capitals, &["True", "FALSE"]),
            (WhyText::Plus, &["+5", "+1.5", "+007"]),
            (WhyText::LeadingZero, &["007", "-01", "00", "00.5", "-00"]),
            (WhyText::Exponent, &["1e5", "-1.5E+3", "01e-3"]),
            (WhyText::MinusZero, &["-0", "-0.00"]),
            (
                WhyText::Digits,
                &[
                    "18446744073709551616",
                    "-9223372036854775809",
                    "3.14159265358979323846",
                    "9007199254740993.0",
                ],
            ),
            (
                WhyText::Word,
                &[
                    "hello", ".5", "5.", "0x10", "1_000", "NaN", "--5", "-", "1.2.3", "1e", "e5",
                    "1e5e6", "1e1.5", "\"5\"", "\u{a0}5", "٣", "5\r", "+", "++5", "Null",
                ],
            ),
        ] {
            for text in texts {
                check(text, expected);
            }
        }
    }
}
