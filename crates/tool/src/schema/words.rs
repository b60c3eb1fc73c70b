//! Descriptions of the allowed values.

use serde_json::Value;

use super::allowed_values::AllowedValues;
use super::alternative::Alternative;
use super::kinds::Kinds;
use crate::argument_error::{joined, shown};

/// The maximum number of named enumeration members; with more, only their number is given.
const NAMED: usize = 20;

impl AllowedValues<'_> {
    /// Describes the allowed values: `an integer or null`.
    pub fn in_words(&self) -> String {
        if let Some(constants) = constants(self) {
            return of_constants(&constants);
        }
        let kinds = self.kinds();
        let mut words: Vec<String> = [
            (Kinds::STRING, "a string"),
            (Kinds::NUMBER, "a number"),
            (Kinds::WHOLE, "an integer"),
            (Kinds::BOOLEAN, "true or false"),
            (Kinds::LIST, "a list"),
            (Kinds::OBJECT, "an object"),
            (Kinds::NULL, "null"),
        ]
        .into_iter()
        .filter(|(kind, _)| {
            kinds.has(*kind) && (*kind != Kinds::WHOLE || !kinds.has(Kinds::NUMBER))
        })
        .map(|(_, word)| word.to_owned())
        .collect();
        if kinds == Kinds::ALL {
            words = vec!["any value".to_owned()];
        }
        // Bounds do not apply to null.
        let bounded = words.len() - usize::from(kinds != Kinds::ALL && kinds.has(Kinds::NULL));
        if let (1, Some(word), [alternative]) =
            (bounded, words.first_mut(), self.alternatives.as_slice())
        {
            word.push_str(&bounds(alternative));
        }
        if words.is_empty() {
            return "nothing".to_owned();
        }
        joined(&words, "or")
    }
}

fn constants<'s>(allowed: &AllowedValues<'s>) -> Option<Vec<&'s Value>> {
    let all: Option<Vec<_>> = allowed.alternatives.iter().map(listed).collect();
    all.filter(|all| !all.is_empty()).map(|all| all.concat())
}

/// Returns the values that an alternative lists; `None` if it lists none.
fn listed<'s>(alternative: &Alternative<'s>) -> Option<Vec<&'s Value>> {
    let stated = |keyword: &str| {
        alternative
            .all
            .iter()
            .find_map(|keywords| keywords.get(keyword))
    };
    match (stated("const"), stated("enum")) {
        (Some(constant), _) => Some(vec![constant]),
        (None, Some(Value::Array(values))) => Some(values.iter().collect()),
        _ => None,
    }
}

fn of_constants(values: &[&Value]) -> String {
    let mut words: Vec<String> = values.iter().take(NAMED).map(|one| shown(one)).collect();
    if let more @ 1.. = values.len().saturating_sub(NAMED) {
        words.push(format!("{more} more"));
    }
    match words.as_slice() {
        [] => "nothing".to_owned(),
        [only] => only.clone(),
        words => format!("one of {}", joined(words, "and")),
    }
}

/// Returns ` from 1 to 5` or ` of at least 2 items`.
fn bounds(alternative: &Alternative<'_>) -> String {
    let limit = |name: &str| {
        alternative
            .all
            .iter()
            .find_map(|keywords| keywords.get(name).filter(|limit| limit.is_number()))
    };
    let with_unit = |limit: &Value, unit: &str| {
        let is_one = limit.as_u64() == Some(1);
        let unit = if is_one {
            unit.trim_end_matches('s')
        } else {
            unit
        };
        format!("{limit}{unit}")
    };
    let counted = |least: &str, most: &str, unit: &str| match (limit(least), limit(most)) {
        (Some(least), Some(most)) if least == most => vec![format!("of {}", with_unit(most, unit))],
        (Some(least), Some(most)) if unit.is_empty() => vec![format!("from {least} to {most}")],
        (Some(least), Some(most)) => vec![format!("of {least} to {}", with_unit(most, unit))],
        (least, most) => [("least", least), ("most", most)]
            .into_iter()
            .filter_map(|(word, limit)| Some(format!("of at {word} {}", with_unit(limit?, unit))))
            .collect(),
    };
    let beyond = [("exclusiveMinimum", "above"), ("exclusiveMaximum", "below")]
        .into_iter()
        .filter_map(|(name, word)| Some(format!("{word} {}", limit(name)?)));
    let words: Vec<String> = counted("minimum", "maximum", "")
        .into_iter()
        .chain(beyond)
        .chain(counted("minLength", "maxLength", " characters"))
        .chain(counted("minItems", "maxItems", " items"))
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" {}", words.join(" and "))
    }
}
