//! Decimal numbers, compared and converted without losing a digit.

use serde_json::{Number, Value};

/// More significant digits than any supported number has: 64-bit floats need 17, 128-bit integers 39.
const MOST_DIGITS: usize = 40;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    /// `-?(0|[1-9][0-9]*)(\.[0-9]+)?`: numbers without a schema.
    Plain,
    /// Also a leading `+`, leading zeros, a point at either end and an exponent: for parameters that are numbers.
    Free,
}

/// The decimal number `digits` times ten to the power of `exponent`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Decimal {
    pub(crate) negative: bool,
    /// Without zeros at either end; empty for zero.
    digits: String,
    exponent: i64,
    pub(crate) has_point: bool,
}

impl Decimal {
    /// Parses a number; `None` if the text is not a number or has more digits than any supported type.
    pub(crate) fn parse(text: &str, notation: Notation) -> Option<Self> {
        let (negative, rest) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None if notation == Notation::Free => (false, text.strip_prefix('+').unwrap_or(text)),
            None => (false, text),
        };
        let (mantissa, power) = match rest.split_once(['e', 'E']) {
            Some((mantissa, power)) if notation == Notation::Free => (mantissa, Some(power)),
            _ => (rest, None),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let is_number = match (notation, fraction) {
            (_, None) => is_digits(whole),
            (Notation::Plain, Some(fraction)) => is_digits(whole) && is_digits(fraction),
            // Either side of the point may be empty.
            (Notation::Free, Some(fraction)) => {
                (is_digits(whole) || whole.is_empty())
                    && (is_digits(fraction) || fraction.is_empty())
                    && mantissa.len() > 1
            }
        };
        if !is_number {
            return None;
        }
        if notation == Notation::Plain && whole.len() > 1 && whole.starts_with('0') {
            return None;
        }
        let fraction_digits = fraction.unwrap_or_default();
        let (digits, mut exponent) = significant(whole, fraction_digits)?;
        if let Some(power) = power {
            let unsigned = power.strip_prefix(['+', '-']).unwrap_or(power);
            if !is_digits(unsigned) {
                return None;
            }
            if !digits.is_empty() {
                exponent += i64::from(power.parse::<i32>().ok()?);
            }
        }
        Some(Self {
            negative,
            digits,
            exponent,
            has_point: fraction.is_some(),
        })
    }

    pub(crate) fn is_zero(&self) -> bool {
        self.digits.is_empty()
    }

    pub(crate) fn magnitude(&self) -> Option<u128> {
        if self.is_zero() {
            return Some(0);
        }
        let zeros = usize::try_from(self.exponent).ok()?;
        if self.digits.len().checked_add(zeros)? > MOST_DIGITS {
            return None;
        }
        let mut text = self.digits.clone();
        text.extend(std::iter::repeat_n('0', zeros));
        text.parse().ok()
    }

    pub(crate) fn is_whole(&self) -> bool {
        self.exponent >= 0 || self.is_zero()
    }

    pub(crate) fn integer(&self) -> Option<Number> {
        let magnitude = self.magnitude()?;
        if self.negative {
            let value = i128::try_from(magnitude).ok()?.checked_neg()?;
            return i64::try_from(value).ok().map(Number::from);
        }
        u64::try_from(magnitude).ok().map(Number::from)
    }

    /// Returns the 64-bit float that JSON writes with exactly these digits.
    ///
    /// If two shortest forms parse to the same float (`600000000000000.2` and `.3`), JSON writes only one of them, and
    /// not the one that `format!` writes.
    pub(crate) fn float(&self) -> Option<f64> {
        self.nearest_float()
            .filter(|float| self.is_written(&Value::from(*float).to_string()))
    }

    /// Returns the 64-bit float that has this number as one of its shortest forms.
    pub(crate) fn float_in_memory(&self) -> Option<f64> {
        let shortest = |float: &f64| self.is_written(&format!("{float:e}"));
        self.float()
            .or_else(|| self.nearest_float().filter(shortest))
    }

    fn nearest_float(&self) -> Option<f64> {
        let sign = if self.negative { "-" } else { "" };
        let text = if self.is_zero() {
            format!("{sign}0.0")
        } else {
            format!("{sign}{}e{}", self.digits, self.exponent)
        };
        text.parse().ok().filter(|float: &f64| float.is_finite())
    }

    fn is_written(&self, text: &str) -> bool {
        Self::parse(text, Notation::Free)
            .is_some_and(|one| one.digits == self.digits && one.exponent == self.exponent)
    }

    pub(crate) fn plain_text(&self) -> String {
        let sign = if self.negative { "-" } else { "" };
        let places = usize::try_from(self.exponent.unsigned_abs()).unwrap_or(usize::MAX);
        let zeros = |count: usize| "0".repeat(count);
        match self.digits.len().checked_sub(places) {
            _ if self.is_zero() => format!("{sign}0.0"),
            _ if self.exponent >= 0 => format!("{sign}{}{}.0", self.digits, zeros(places)),
            Some(at) if at > 0 => {
                let (whole, fraction) = self.digits.split_at(at);
                format!("{sign}{whole}.{fraction}")
            }
            _ => format!(
                "{sign}0.{}{}",
                zeros(places - self.digits.len()),
                self.digits
            ),
        }
    }
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// Returns the significant digits of `whole.fraction`, and the exponent of the last one.
fn significant(whole: &str, fraction: &str) -> Option<(String, i64)> {
    let places = |text: &str| i64::try_from(text.len()).ok();
    let kept = fraction.trim_end_matches('0');
    let (head, tail, exponent) = if kept.is_empty() {
        let head = whole.trim_end_matches('0');
        (head, "", places(whole)? - places(head)?)
    } else {
        (whole, kept, -places(kept)?)
    };
    let head = head.trim_start_matches('0');
    let tail = if head.is_empty() {
        tail.trim_start_matches('0')
    } else {
        tail
    };
    if head.len() + tail.len() > MOST_DIGITS {
        return None;
    }
    let digits = format!("{head}{tail}");
    let exponent = if digits.is_empty() { 0 } else { exponent };
    Some((digits, exponent))
}

/// Returns the text of a scalar; numbers have no exponent.
pub fn scalar_text(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Bool(value) => Some(value.to_string()),
        Value::Number(number) if number.is_f64() => {
            Some(Decimal::parse(&number.to_string(), Notation::Free)?.plain_text())
        }
        Value::Number(number) => Some(number.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}
