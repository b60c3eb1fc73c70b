//! Placeholders for values that the model has to write: a description of the expected value.

use serde_json::{Map, Value};

use plaincall_syntax::is_blank;

use plaincall_names::shortened;
use plaincall_tool::pointer::unusable_key;
use plaincall_tool::schema::{AllowedValues, Kinds, SchemaReader};

const LONGEST: usize = 160;
/// The maximum depth of the required parts of an object.
const DEEPEST: usize = 4;
/// The maximum number of placeholders in one argument; with more, the whole argument is one placeholder.
const MOST: usize = 12;

pub(super) fn placeholder(words: &str) -> String {
    let words: String = words
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    format!("<{}>", shortened(&words, LONGEST))
}

/// Returns `true` for a placeholder; the text may also be the only allowed value.
pub(super) fn is_placeholder(text: &str) -> bool {
    text.starts_with('<') && text.ends_with('>')
}

pub(super) fn ended_early(words: &str, len: usize) -> String {
    let count = bytes(len);
    placeholder(&format!("{words} in full; only {count} received"))
}

pub(super) fn as_before(what: &str) -> String {
    placeholder(&format!("as before: {what}"))
}

pub(super) fn bytes(count: usize) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} byte{plural}")
}

/// Returns a placeholder such as `<limit:_an_integer>` for the line of an emoji call, where an argument is one word.
pub(super) fn word_on_line(name: &str, words: &str, takes_rest: bool) -> String {
    let full = placeholder(&format!("{name}: {words}"));
    let word = if full.contains(']') {
        format!("<{name}>")
    } else {
        full
    };
    if takes_rest {
        word
    } else {
        word.replace(is_blank, "_")
    }
}

/// Keeps the alternatives of an object whose constants match the written value, if there are any: `kind` selects one.
pub(super) fn narrowed<'s>(
    reader: &SchemaReader<'s>,
    allowed: &AllowedValues<'s>,
    written: &Value,
) -> AllowedValues<'s> {
    let has_constants = |form: &AllowedValues<'s>| {
        form.properties().all(|(name, _)| {
            let below = reader.member(form, name);
            let value = written.get(name).filter(|_| below.is_listed());
            value.is_none_or(|value| reader.allows(&below, value))
        })
    };
    let forms = allowed.alternatives.iter().cloned();
    let alternatives: Vec<_> = forms
        .filter(|form| {
            has_constants(&AllowedValues {
                alternatives: vec![form.clone()],
            })
        })
        .collect();
    if alternatives.is_empty() {
        allowed.clone()
    } else {
        AllowedValues { alternatives }
    }
}

/// Returns the expected value: a placeholder, or an object or list of placeholders if its parts are known.
pub(super) fn skeleton<'s>(reader: &SchemaReader<'s>, allowed: &AllowedValues<'s>) -> Value {
    let mut left = MOST;
    // Of several alternatives of an object only one is shown. The written value has already narrowed them.
    let is_object = allowed.kinds() == Kinds::OBJECT;
    let first = allowed.alternatives.first().filter(|_| is_object).cloned();
    let allowed = &first.map_or_else(
        || allowed.clone(),
        |first| AllowedValues {
            alternatives: vec![first],
        },
    );
    parts(reader, allowed, 0, &mut left).unwrap_or_else(|| whole(allowed))
}

/// Returns one placeholder for the whole value.
pub(super) fn whole(allowed: &AllowedValues<'_>) -> Value {
    let kinds = allowed.kinds();
    let mut words = allowed.in_words();
    if kinds != Kinds::ALL && kinds.has_any(Kinds::LIST | Kinds::OBJECT) {
        words.push_str(", as JSON");
    }
    placeholder(&words).into()
}

/// Returns `None` if there are too many parts.
fn parts<'s>(
    reader: &SchemaReader<'s>,
    allowed: &AllowedValues<'s>,
    depth: usize,
    left: &mut usize,
) -> Option<Value> {
    let kinds = allowed.kinds();
    if let Some(only) = only_value(allowed) {
        return Some(only.clone());
    }
    let is_one = allowed.alternatives.len() == 1 && depth < DEEPEST;
    if is_one && kinds == Kinds::OBJECT {
        let names: Vec<&str> = allowed.required_always().collect();
        if !names.is_empty() && names.iter().all(|name| unusable_key(name).is_none()) {
            let mut members = Map::new();
            for name in names {
                let below = reader.member(allowed, name);
                members.insert(name.to_owned(), parts(reader, &below, depth + 1, left)?);
            }
            return Some(members.into());
        }
    }
    if is_one && kinds == Kinds::LIST && takes_one_item(allowed) {
        let below = reader.item(allowed, 0);
        if !below.alternatives.is_empty() {
            return Some(Value::Array(vec![parts(reader, &below, depth + 1, left)?]));
        }
    }
    *left = left.checked_sub(1)?;
    Some(whole(allowed))
}

fn only_value<'s>(allowed: &AllowedValues<'s>) -> Option<&'s Value> {
    let listed = || match allowed.annotation("enum") {
        Some(Value::Array(values)) => values.first().filter(|_| values.len() == 1),
        _ => None,
    };
    let is_one = allowed.alternatives.len() == 1;
    is_one
        .then(|| allowed.annotation("const").or_else(listed))
        .flatten()
}

fn takes_one_item(allowed: &AllowedValues<'_>) -> bool {
    let limit = |name: &str| allowed.annotation(name).and_then(Value::as_u64);
    limit("minItems").is_none_or(|least| least <= 1)
        && limit("maxItems").is_none_or(|most| most >= 1)
        && allowed.annotation("prefixItems").is_none()
}
