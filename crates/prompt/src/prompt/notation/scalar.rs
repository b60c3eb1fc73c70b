//! Values without parts.

use std::fmt::Write as _;

use serde_json::Value;

use super::keywords::Keywords;
use super::words::{Precedence, Words, json};

/// Up to this many values are separated by bars; more are written as a JSON list, which takes fewer tokens. The limit
/// is higher if the type is obvious.
const BARS: usize = 2;
const BARS_FOR_TYPE: usize = 4;

/// Writes `const` and `enum`: the values `"a" | "b"`, or `one of ["a","b"]` if there are many.
pub(super) fn listed(keywords: &mut Keywords<'_>) -> Option<Words> {
    let is_scalar = |value: &Value| !value.is_array() && !value.is_object();
    let are_scalars = |value: &Value| {
        let list = value.as_array();
        list.is_some_and(|list| !list.is_empty() && list.iter().all(is_scalar))
    };
    let values = match keywords.take_if("const", is_scalar) {
        Some(value) => vec![value.into_owned()],
        None => match keywords.take_if("enum", are_scalars)?.into_owned() {
            Value::Array(values) => values,
            _ => return None,
        },
    };
    let bars = if keywords.take_type_of_values(&values) {
        BARS_FOR_TYPE
    } else {
        BARS
    };
    if values.len() > bars {
        let text = format!("one of {}", json(&values.into()));
        return Some(Words::atom(text));
    }
    let texts: Vec<String> = values.iter().map(json).collect();
    let precedence = match texts.len() {
        1 => Precedence::Atom,
        _ => Precedence::Any,
    };
    let text = texts.join(" | ");
    Some(Words { text, precedence })
}

/// Writes `string email 1..50 chars /^a/`.
pub(super) fn string(keywords: &mut Keywords<'_>) -> Words {
    let mut words = Words::atom("string");
    if let Some(format) = format(keywords) {
        words = words.then(&format!(" {format}"), Precedence::Narrowed);
    }
    if let Some(bounds) = counts(keywords, "minLength", "maxLength") {
        words = words.then(&format!(" {bounds} chars"), Precedence::Narrowed);
    }
    if let Some(pattern) = keywords.take_text("pattern") {
        words = words.then(
            &format!(" {}", spelled_pattern(&pattern)),
            Precedence::Narrowed,
        );
    }
    words
}

/// Writes `integer 0..511 multiple of 7`. If both kinds of numbers are allowed, constraints stay with the remaining
/// keywords.
pub(super) fn number(name: &str, types: &[&str], keywords: &mut Keywords<'_>) -> Words {
    let mut words = Words::atom(name);
    if types.contains(&"integer") && types.contains(&"number") {
        return words;
    }
    // Beside a string it may be the string's.
    let is_own = !types.contains(&"string");
    if let Some(format) = is_own.then(|| format(keywords)).flatten() {
        words = words.then(&format!(" {format}"), Precedence::Narrowed);
    }
    let limits = limits(keywords);
    if !limits.is_empty() {
        words = words.then(&limits, Precedence::Narrowed);
    }
    if let Some(step) = keywords.take_if("multipleOf", Value::is_number) {
        words = words.then(&format!(" multiple of {step}"), Precedence::Narrowed);
    }
    words
}

/// Takes a format that is one plain word.
fn format(keywords: &mut Keywords<'_>) -> Option<String> {
    let is_plain = |value: &Value| {
        value.as_str().is_some_and(|word| {
            word.starts_with(|first: char| first.is_ascii_lowercase())
                && word
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
        })
    };
    Some(keywords.take_if("format", is_plain)?.as_str()?.to_owned())
}

/// Writes `/^a/`, or JSON text if the pattern contains slashes or line ends.
pub(super) fn spelled_pattern(pattern: &str) -> String {
    let text = json(&pattern.into());
    let escapes = pattern.matches(['\\', '"']).count();
    let is_plain = text.len() == pattern.len() + escapes + 2;
    if is_plain && !pattern.is_empty() && !pattern.contains('/') {
        format!("/{pattern}/")
    } else {
        format!("pattern {text}")
    }
}

/// Writes `1..5`, `>=1`, `<=5`, or one number if both are equal.
pub(super) fn counts(keywords: &mut Keywords<'_>, least: &str, most: &str) -> Option<String> {
    let least = keywords.take_if(least, Value::is_u64);
    let most = keywords.take_if(most, Value::is_u64);
    Some(match (least, most) {
        (Some(least), Some(most)) if least == most => least.to_string(),
        (Some(least), Some(most)) => format!("{least}..{most}"),
        (Some(least), None) => format!(">={least}"),
        (None, Some(most)) => format!("<={most}"),
        (None, None) => return None,
    })
}

/// Writes the limits of a number, each after a blank. Limits with a flag of draft 4 stay with the remaining keywords.
fn limits(keywords: &mut Keywords<'_>) -> String {
    let mut take = |limit: &str, exclusive: &str| {
        let has_flag = keywords.get(exclusive).is_some_and(Value::is_boolean);
        let inclusive = keywords.take_if(limit, |limit| limit.is_number() && !has_flag);
        (inclusive, keywords.take_if(exclusive, Value::is_number))
    };
    let (least, above) = take("minimum", "exclusiveMinimum");
    let (most, below) = take("maximum", "exclusiveMaximum");
    let mut text = String::new();
    if let (Some(least), Some(most)) = (&least, &most) {
        let _ = write!(text, " {least}..{most}");
    }
    let is_range = !text.is_empty();
    for (sign, inclusive, exclusive) in [('>', least, above), ('<', most, below)] {
        if let Some(limit) = inclusive.filter(|_| !is_range) {
            let _ = write!(text, " {sign}={limit}");
        }
        if let Some(limit) = exclusive {
            let _ = write!(text, " {sign}{limit}");
        }
    }
    text
}
