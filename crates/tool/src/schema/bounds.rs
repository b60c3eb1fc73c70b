//! The keywords that limit the size or length of a value.

use std::cmp::Ordering;

use serde_json::{Number, Value};

use super::keywords::Keywords;

pub(crate) fn keeps_bounds(keywords: &Keywords, value: &Value) -> bool {
    match value {
        Value::Number(number) => {
            let is_within = |name: &str, allowed: &[Ordering]| {
                let Some(Value::Number(limit)) = keywords.get(name) else {
                    return true;
                };
                compare(number, limit).is_none_or(|order| allowed.contains(&order))
            };
            is_within("minimum", &[Ordering::Greater, Ordering::Equal])
                && is_within("maximum", &[Ordering::Less, Ordering::Equal])
                && is_within("exclusiveMinimum", &[Ordering::Greater])
                && is_within("exclusiveMaximum", &[Ordering::Less])
        }
        Value::String(text) => {
            let is_bounded = ["minLength", "maxLength"]
                .iter()
                .any(|name| keywords.contains_key(*name));
            !is_bounded || has_count(keywords, "minLength", "maxLength", text.chars().count())
        }
        Value::Array(items) => has_count(keywords, "minItems", "maxItems", items.len()),
        Value::Object(members) => {
            has_count(keywords, "minProperties", "maxProperties", members.len())
        }
        Value::Null | Value::Bool(_) => true,
    }
}

fn has_count(keywords: &Keywords, least: &str, most: &str, count: usize) -> bool {
    let limit = |name: &str| keywords.get(name).and_then(Value::as_u64);
    let count = u64::try_from(count).unwrap_or(u64::MAX);
    limit(least).is_none_or(|least| count >= least) && limit(most).is_none_or(|most| count <= most)
}

/// Compares two values; numbers are equal if their values are, regardless of the notation.
pub fn is_same(one: &Value, two: &Value) -> bool {
    match (one, two) {
        (Value::Number(one), Value::Number(two)) => compare(one, two) == Some(Ordering::Equal),
        (Value::Array(one), Value::Array(two)) => {
            one.len() == two.len() && one.iter().zip(two).all(|(one, two)| is_same(one, two))
        }
        (Value::Object(one), Value::Object(two)) => {
            one.len() == two.len()
                && one
                    .iter()
                    .all(|(key, one)| two.get(key).is_some_and(|two| is_same(one, two)))
        }
        _ => one == two,
    }
}

fn compare(one: &Number, two: &Number) -> Option<Ordering> {
    match (one.as_i128(), two.as_i128()) {
        (Some(one), Some(two)) => Some(one.cmp(&two)),
        _ => one.as_f64()?.partial_cmp(&two.as_f64()?),
    }
}
