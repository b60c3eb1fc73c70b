//! A JSON value with placeholders for its invalid parts.

use serde_json::Value;

use crate::repair::kept::{Keeper, Slot, allowed_at, is_in_union};
use crate::repair::placeholder::{narrowed, skeleton, whole};
use plaincall_names::pointers::unescape;
use plaincall_tool::schema::{AllowedValues, SchemaReader};

/// Returns the value at `pointer` with placeholders for the invalid or missing parts at the `broken` pointers. If
/// single parts cannot be replaced, the whole value becomes a placeholder.
pub(super) fn fixed<'s>(
    reader: &SchemaReader<'s>,
    root: &AllowedValues<'s>,
    value: Value,
    pointer: &str,
    broken: &[String],
    keeper: &Keeper,
) -> Value {
    let is_short = matches!(keeper.slot(&value.to_string()), Slot::Kept(_));
    let is_partly = |one: &String| one.len() > pointer.len() && !is_in_union(reader, root, one);
    let mut fixed = value;
    let is_fixed = is_short
        && broken.iter().all(is_partly)
        && broken.iter().all(|one| {
            let rest = one.get(pointer.len() + 1..).unwrap_or_default();
            let allowed = allowed_at(reader, root, one);
            if allowed.alternatives.is_empty() {
                remove(&mut fixed, rest)
            } else {
                replace(&mut fixed, rest, whole(&allowed))
            }
        });
    if is_fixed {
        return fixed;
    }
    let allowed = allowed_at(reader, root, pointer);
    skeleton(reader, &narrowed(reader, &allowed, &fixed))
}

fn above<'v, 'p>(value: &'v mut Value, pointer: &'p str) -> (Option<&'v mut Value>, &'p str) {
    match pointer.rsplit_once('/') {
        Some((above, last)) => (value.pointer_mut(&format!("/{above}")), last),
        None => (Some(value), pointer),
    }
}

fn replace(value: &mut Value, pointer: &str, with: Value) -> bool {
    match above(value, pointer) {
        (Some(Value::Object(members)), last) => {
            members.insert(unescape(last).into_owned(), with);
            true
        }
        (Some(Value::Array(items)), last) => {
            let index = last.parse::<usize>().ok();
            let item = index.and_then(|index| items.get_mut(index));
            item.map(|item| *item = with).is_some()
        }
        _ => false,
    }
}

fn remove(value: &mut Value, pointer: &str) -> bool {
    match above(value, pointer) {
        (Some(Value::Object(members)), last) => members.shift_remove(&*unescape(last)).is_some(),
        _ => false,
    }
}
