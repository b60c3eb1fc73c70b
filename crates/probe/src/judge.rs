//! Whether an attempt did what its task asks for: by its effect on the world, and what the answer reveals.

use serde_json::{Map, Value};

use crate::task::Task;
use crate::world::Scene;

/// The most of a value that is shown, in characters.
const SHOWN: usize = 120;
/// Sections whose entries a task changes one by one.
const BY_NAME: [&str; 2] = ["files", "directories"];
const TABLES: &str = "tables";

/// Checks the world and the answer.
///
/// # Errors
/// Returns the first difference.
pub(crate) fn judge(task: &Task, scene: &Scene, answer: &str) -> Result<(), String> {
    if task.has_no_calls
        && let Some((tool, _)) = scene.done.first()
    {
        return Err(format!("called `{tool}`, although no call is needed"));
    }
    let mut expected = match &task.world {
        Value::Object(world) => world.clone(),
        _ => Map::new(),
    };
    expect(&mut expected, &task.expect);
    let empty = Map::new();
    let found = scene.state.as_object().unwrap_or(&empty);
    let sections = expected.keys().chain(found.keys());
    for section in sections {
        let (expected, found) = (expected.get(section), found.get(section));
        compare(task, section, expected, found)?;
    }
    if let Some(tool) = &task.together {
        let replies = scene.done.iter().filter(|(name, _)| name == tool);
        let replies: Vec<u32> = replies.map(|(_, reply)| *reply).collect();
        if replies.first() != replies.last() {
            return Err(format!(
                "the calls of `{tool}` were not in one reply, but in replies {} to {}",
                replies.first().copied().unwrap_or_default(),
                replies.last().copied().unwrap_or_default()
            ));
        }
    }
    let plain = without_separators(&answer.to_lowercase());
    match task.answer.iter().find(|word| !plain.contains(*word)) {
        Some(word) => Err(format!(
            "the answer does not contain `{word}`: {}",
            short(answer)
        )),
        None => Ok(()),
    }
}

/// Applies the expected changes to the initial state. `null` removes a file or a record.
fn expect(state: &mut Map<String, Value>, changes: &Value) {
    for (section, change) in changes.as_object().into_iter().flatten() {
        if BY_NAME.contains(&section.as_str()) {
            overlay(state, section, change);
        } else if section == TABLES {
            let tables = state.entry(section).or_insert_with(|| Map::new().into());
            if let (Some(tables), Some(change)) = (tables.as_object_mut(), change.as_object()) {
                for (table, records) in change {
                    overlay(tables, table, records);
                }
            }
        } else {
            state.insert(section.clone(), change.clone());
        }
    }
}

fn overlay(state: &mut Map<String, Value>, name: &str, change: &Value) {
    let entries = state.entry(name).or_insert_with(|| Map::new().into());
    let (Some(entries), Some(change)) = (entries.as_object_mut(), change.as_object()) else {
        return;
    };
    for (name, value) in change {
        if value.is_null() {
            entries.shift_remove(name);
        } else {
            entries.insert(name.clone(), value.clone());
        }
    }
}

/// Compares a section. In a list of `append` tools the order does not count.
fn compare(
    task: &Task,
    section: &str,
    expected: Option<&Value>,
    found: Option<&Value>,
) -> Result<(), String> {
    if expected.is_some_and(Value::is_array) || found.is_some_and(Value::is_array) {
        let list = |value: Option<&Value>| {
            let items = value.and_then(Value::as_array).cloned();
            let mut items = items.unwrap_or_default();
            for item in items.iter_mut().filter_map(Value::as_object_mut) {
                for (name, absent) in &task.same_as_absent {
                    if item.get(name) == Some(absent) {
                        item.shift_remove(name);
                    }
                }
            }
            items
        };
        let mut missing = list(expected);
        for item in list(found) {
            if let Some(at) = missing.iter().position(|wanted| same(wanted, &item)) {
                missing.swap_remove(at);
                continue;
            }
            let near = missing.first().and_then(|wanted| difference(wanted, &item));
            let near = near.unwrap_or_else(|| short(&item.to_string()));
            return Err(format!("wrong entry in {section}: {near}"));
        }
        return match missing.first() {
            Some(item) => Err(format!(
                "missing entry in {section}: {}",
                short(&item.to_string())
            )),
            None => Ok(()),
        };
    }
    let empty = Value::Object(Map::new());
    let (expected, found) = (expected.unwrap_or(&empty), found.unwrap_or(&empty));
    match difference(expected, found) {
        Some(difference) => Err(format!("{section}: {difference}")),
        None => Ok(()),
    }
}

/// The first difference, in words.
fn difference(expected: &Value, found: &Value) -> Option<String> {
    if same(expected, found) {
        return None;
    }
    if let (Value::Object(expected), Value::Object(found)) = (expected, found) {
        for (name, wanted) in expected {
            match found.get(name) {
                None => return Some(format!("`{name}` is missing")),
                Some(value) => {
                    if let Some(difference) = difference(wanted, value) {
                        return Some(format!("`{name}`: {difference}"));
                    }
                }
            }
        }
        let mut others = found.keys().filter(|name| !expected.contains_key(*name));
        return others.next().map(|name| format!("unexpected `{name}`"));
    }
    if let (Value::String(expected), Value::String(found)) = (expected, found) {
        let lines = expected.lines().zip(found.lines());
        let line = lines.enumerate().find(|(_, (one, other))| one != other);
        if let Some((index, (one, other))) = line {
            return Some(format!(
                "line {} is `{}` instead of `{}`",
                index + 1,
                short(other),
                short(one)
            ));
        }
        return Some(format!(
            "{} lines instead of {}",
            found.lines().count(),
            expected.lines().count()
        ));
    }
    Some(format!(
        "{} instead of {}",
        short(&found.to_string()),
        short(&expected.to_string())
    ))
}

/// Whether a value is as expected. White space around single lines does not count, and final line ends never.
fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(expected), Value::String(found)) => {
            let ends = ['\r', '\n'];
            let (expected, found) = (
                expected.trim_end_matches(ends),
                found.trim_end_matches(ends),
            );
            expected == found || !found.contains('\n') && expected.trim() == found.trim()
        }
        (Value::Number(expected), Value::Number(found)) => expected.as_f64() == found.as_f64(),
        (Value::Array(expected), Value::Array(found)) => {
            let mut pairs = expected.iter().zip(found);
            expected.len() == found.len() && pairs.all(|(expected, found)| same(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(name, expected)| {
                    found.get(name).is_some_and(|found| same(expected, found))
                })
        }
        (expected, found) => expected == found,
    }
}

/// A text without the separators in its numbers: `48,120` is `48120`.
fn without_separators(text: &str) -> String {
    let characters: Vec<char> = text.chars().collect();
    let is_digit = |at: Option<usize>| {
        let c = at.and_then(|at| characters.get(at));
        c.is_some_and(char::is_ascii_digit)
    };
    let is_separator = |at: usize, c: char| {
        matches!(c, ',' | '\u{202f}' | '\u{a0}' | '\u{2009}')
            && is_digit(at.checked_sub(1))
            && is_digit(Some(at + 1))
    };
    let kept = characters.iter().enumerate();
    kept.filter(|(at, c)| !is_separator(*at, **c))
        .map(|(_, c)| c)
        .collect()
}

pub(crate) fn short(text: &str) -> String {
    let mut line = text.split_whitespace().collect::<Vec<_>>().join(" ");
    if let Some((end, _)) = line.char_indices().nth(SHOWN) {
        line.truncate(end);
        line.push('…');
    }
    line
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{same, without_separators};

    #[test]
    fn equal_values() {
        for (expected, found, is_same) in [
            (json!("Oslo"), json!(" Oslo"), true),
            (json!("Oslo"), json!("oslo"), false),
            (json!("a\nb\n"), json!("a\nb"), true),
            (json!("a\n b"), json!("a\nb"), false),
            (json!(" a\nb"), json!("a\nb"), false),
            (json!(4), json!(4.0), true),
            (json!(4), json!("4"), false),
            (
                json!({"a": [1, {"b": "c"}]}),
                json!({"a": [1.0, {"b": "c"}]}),
                true,
            ),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!(null), json!(false), false),
        ] {
            assert_eq!(same(&expected, &found), is_same, "{expected} {found}");
        }
    }

    #[test]
    fn separators_in_numbers_do_not_count() {
        assert_eq!(without_separators("48,120 and 1, 2"), "48120 and 1, 2");
    }
}
