//! The keywords of a schema that a grammar reads, and those that it cannot enforce (`spec/grammar.md` 5).

use indexmap::IndexMap;
use serde_json::Value;

use plaincall_tool::schema::{Alternative, Kinds};

/// Keywords that no grammar enforces.
const NEVER: &[&str] = &[
    "$dynamicRef",
    "$recursiveRef",
    "contains",
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "else",
    "format",
    "if",
    "maxContains",
    "maxProperties",
    "minContains",
    "minProperties",
    "multipleOf",
    "not",
    "oneOf",
    "patternProperties",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
    "uniqueItems",
];
/// Keywords whose value is an object with a member for each name, so that it has no effect if it is empty.
const MAPS: &[&str] = &[
    "dependencies",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
];
/// The formats that no empty text has.
const WITH_CONTENT: [&str; 13] = [
    "date",
    "date-time",
    "duration",
    "email",
    "hostname",
    "idn-email",
    "idn-hostname",
    "ipv4",
    "ipv6",
    "iri",
    "time",
    "uri",
    "uuid",
];
/// The bounds of numbers.
const BOUNDS: &[&str] = &["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"];

/// Returns the keywords of an alternative that the grammar does not enforce.
pub(crate) fn unheld(alternative: &Alternative<'_>) -> Vec<&'static str> {
    let kinds = alternative.kinds().unwrap_or(Kinds::ALL);
    let mut found = Vec::new();
    for keywords in &alternative.all {
        for name in NEVER {
            let is_effective = match keywords.get(*name) {
                None => false,
                Some(&Value::Bool(is_set)) if *name == "uniqueItems" => is_set,
                Some(value) if name.starts_with("min") => value.as_f64() != Some(0.0),
                Some(Value::Object(members)) if MAPS.contains(name) => !members.is_empty(),
                Some(_) => true,
            };
            if is_effective && applies(name, kinds) {
                found.push(*name);
            }
        }
        let is_zero = |value: &Value| value.as_f64() == Some(0.0);
        for name in BOUNDS {
            let bound = keywords.get(*name);
            // The sign is enforced.
            let is_sign = *name == "minimum" && bound.is_some_and(is_zero);
            if bound.is_some()
                && !is_sign
                && kinds.has_any(Kinds::WHOLE | Kinds::FRACTION)
                && listed(alternative).is_none()
            {
                found.push(*name);
            }
        }
    }
    found
}

fn applies(name: &str, kinds: Kinds) -> bool {
    match name {
        "format" => kinds.has(Kinds::STRING),
        "contains" | "minContains" | "maxContains" | "uniqueItems" | "unevaluatedItems" => {
            kinds.has(Kinds::LIST)
        }
        "multipleOf" => kinds.has(Kinds::WHOLE),
        "minProperties"
        | "maxProperties"
        | "propertyNames"
        | "patternProperties"
        | "unevaluatedProperties"
        | "dependentRequired"
        | "dependentSchemas"
        | "dependencies" => kinds.has(Kinds::OBJECT),
        _ => true,
    }
}

/// Returns the values of `enum` and `const`; `None` if no keyword lists values.
pub(crate) fn listed<'s>(alternative: &Alternative<'s>) -> Option<Vec<&'s Value>> {
    let of = |name: &str| {
        alternative
            .all
            .iter()
            .find_map(|keywords| keywords.get(name))
    };
    if let Some(value) = of("const") {
        return Some(vec![value]);
    }
    of("enum")?.as_array().map(|values| values.iter().collect())
}

/// Returns the members that an object may have, in order, and whether each is required.
pub(crate) fn members<'s>(alternative: &Alternative<'s>) -> Vec<(&'s str, bool)> {
    let declared = alternative.properties().map(|(name, _)| (name, false));
    let mut names: IndexMap<&'s str, bool> = declared.collect();
    names.extend(alternative.required().map(|name| (name, true)));
    names.into_iter().collect()
}

/// Returns `true` if only declared members are allowed.
pub(crate) fn is_closed(alternative: &Alternative<'_>) -> bool {
    let no_more = |name: &str| {
        let mut all = alternative.all.iter();
        all.any(|keywords| keywords.get(name) == Some(&Value::Bool(false)))
    };
    let mut all = alternative.all.iter();
    let has_patterns = all.any(|keywords| keywords.contains_key("patternProperties"));
    !has_patterns && (no_more("additionalProperties") || no_more("unevaluatedProperties"))
}

/// Returns the number of items that have schemas of their own.
pub(crate) fn first_items(alternative: &Alternative<'_>) -> usize {
    let count = |name: &str| {
        let lists = alternative
            .all
            .iter()
            .filter_map(move |keywords| keywords.get(name)?.as_array());
        lists.map(Vec::len).max().unwrap_or_default()
    };
    count("prefixItems").max(count("items"))
}

/// Returns the least and the greatest count that keywords such as `minItems` allow; `None` if there is no such count.
pub(crate) fn bounds(
    alternative: &Alternative<'_>,
    least: &str,
    most: &str,
) -> Option<(usize, Option<usize>)> {
    let stated = |name: &str| {
        let all = alternative.all.iter();
        let counts = all.filter_map(|keywords| count(keywords.get(name)?));
        counts.collect::<Vec<_>>()
    };
    let least = stated(least).into_iter().max().unwrap_or_default();
    let most = stated(most).into_iter().min();
    most.is_none_or(|most| least <= most)
        .then_some((least, most))
}

/// Returns the regular expressions that a string must match.
pub(crate) fn patterns<'s>(alternative: &Alternative<'s>) -> Vec<&'s str> {
    let all = alternative.all.iter();
    all.filter_map(|keywords| keywords.get("pattern")?.as_str())
        .collect()
}

/// Returns `true` if the `format` of a string, which is not enforced, demands content.
pub(crate) fn has_format(alternative: &Alternative<'_>) -> bool {
    let mut all = alternative.all.iter();
    all.any(|keywords| {
        let format = keywords.get("format").and_then(Value::as_str);
        format.is_some_and(|format| WITH_CONTENT.contains(&format))
    })
}

/// Returns the keywords that limit strings.
pub(crate) fn limits(alternative: &Alternative<'_>) -> Vec<&'static str> {
    let has = |name: &str| {
        let mut all = alternative.all.iter();
        all.any(|keywords| {
            let value = keywords.get(name);
            value.is_some_and(|value| name != "minLength" || value.as_f64() != Some(0.0))
        })
    };
    let all = ["maxLength", "minLength", "pattern"].into_iter();
    all.filter(|name| has(name)).collect()
}

/// Returns a count, which may be written as a float.
fn count(value: &Value) -> Option<usize> {
    let whole = value
        .as_u64()
        .map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    whole.or_else(|| {
        let float = value.as_f64().filter(|float| float.fract() == 0.0)?;
        format!("{float:.0}").parse().ok()
    })
}

/// Returns `true` if a bound excludes negative numbers.
pub(crate) fn has_no_sign(alternative: &Alternative<'_>) -> bool {
    alternative.all.iter().any(|keywords| {
        let mut bounds = ["minimum", "exclusiveMinimum"].iter();
        bounds.any(|name| keywords.get(*name).and_then(Value::as_f64) >= Some(0.0))
    })
}

/// Returns the keyword that probably makes the grammar of an alternative large.
pub(crate) fn largest(alternative: &Alternative<'_>) -> &'static str {
    let names = [
        "const",
        "enum",
        "properties",
        "prefixItems",
        "items",
        "additionalProperties",
    ];
    let has = |name: &&&str| {
        alternative
            .all
            .iter()
            .any(|keywords| keywords.contains_key(**name))
    };
    names.iter().find(has).copied().unwrap_or("type")
}

/// Returns what makes an alternative the same as another one.
pub(crate) fn identity(alternative: &Alternative<'_>) -> Vec<usize> {
    alternative
        .all
        .iter()
        .map(|keywords| std::ptr::from_ref(*keywords).addr())
        .collect()
}
