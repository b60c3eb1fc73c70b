//! The effects of the tools on the state of the world.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::tool::{Definition, Operation};

/// Applies a call. The state changes only if it succeeds.
pub(crate) fn apply(tool: &Definition, state: &mut Value, args: &Value) -> Result<String, String> {
    let text = |name: &str| args.get(name).and_then(Value::as_str).unwrap_or_default();
    let path = |name: &str| text(name).trim().trim_start_matches("./").to_owned();
    match tool.does {
        Operation::ReadFile => read(state, &path("path"), args),
        Operation::WriteFile => write(state, &path("path"), text("content")),
        Operation::EditFile => edit(state, &path("path"), text("search"), text("replace")),
        Operation::ListFiles => list(state, &path("directory")),
        Operation::SearchFiles => Ok(search(state, text("text"), &path("directory"))),
        Operation::MakeDirectory => {
            make_directory(state, path("path").trim_end_matches('/'));
            Ok("created".to_owned())
        }
        Operation::MoveFile => move_file(state, &path("from"), &path("to")),
        Operation::DeleteFile => {
            file(state, &path("path"))?;
            put(state, &["files", &path("path")], None);
            Ok("deleted".to_owned())
        }
        Operation::GetRecord => record(state, text("table"), text("id")).map(Value::to_string),
        Operation::FindRecords => find(state, text("table"), args),
        Operation::SaveRecord => {
            save_record(state, text("table"), text("id"), args);
            Ok("saved".to_owned())
        }
        Operation::DeleteRecord => {
            record(state, text("table"), text("id"))?;
            put(state, &["tables", text("table"), text("id")], None);
            Ok("deleted".to_owned())
        }
        Operation::ReadGauge => {
            let name = text("name");
            let gauge = state.get("gauges").and_then(|gauges| gauges.get(name));
            let value = gauge.and_then(Value::as_str).map(str::to_owned);
            value.ok_or_else(|| format!("there is no gauge `{name}`"))
        }
        Operation::RunTests => run_tests(state, path("directory").trim_end_matches('/')),
        Operation::Append => append(tool, state, args),
        Operation::Fixed => Ok(tool.result.clone()),
    }
}

fn read(state: &Value, path: &str, args: &Value) -> Result<String, String> {
    let content = file(state, path)?;
    let number = |name: &str| {
        let number = args.get(name).and_then(Value::as_u64);
        number.map(|number| usize::try_from(number).unwrap_or(usize::MAX))
    };
    let (from, lines) = (number("from_line"), number("lines"));
    if from.is_none() && lines.is_none() {
        return Ok(content.to_owned());
    }
    let skipped = from.unwrap_or(1).saturating_sub(1);
    let part = content.split_inclusive('\n').skip(skipped);
    Ok(part.take(lines.unwrap_or(usize::MAX)).collect())
}

fn write(state: &mut Value, path: &str, content: &str) -> Result<String, String> {
    check_parent(state, path)?;
    put(state, &["files", path], Some(content.into()));
    Ok("written".to_owned())
}

fn edit(state: &mut Value, path: &str, search: &str, replace: &str) -> Result<String, String> {
    let content = file(state, path)?;
    let new = match content.matches(search).count() {
        _ if search.is_empty() => return Err("`search` is empty".to_owned()),
        0 => {
            return Err(format!(
                "`search` does not occur in {path}. The file contains:\n{content}"
            ));
        }
        1 => content.replacen(search, replace, 1),
        many => {
            return Err(format!(
                "`search` occurs {many} times in {path}; include more of its context"
            ));
        }
    };
    put(state, &["files", path], Some(new.into()));
    Ok("edited".to_owned())
}

/// Creates a directory and its parents.
fn make_directory(state: &mut Value, path: &str) {
    let ends = path.match_indices('/').map(|(at, _)| at);
    for end in ends.chain([path.len()]) {
        let part = path.get(..end).unwrap_or_default();
        put(state, &["directories", part], Some(true.into()));
    }
}

fn move_file(state: &mut Value, from: &str, to: &str) -> Result<String, String> {
    let content = file(state, from)?.to_owned();
    if file(state, to).is_ok() {
        return Err(format!("{to} exists already"));
    }
    check_parent(state, to)?;
    put(state, &["files", from], None);
    put(state, &["files", to], Some(content.into()));
    Ok("moved".to_owned())
}

/// Replaces the given fields of a record, or creates it.
fn save_record(state: &mut Value, table: &str, id: &str, args: &Value) {
    let mut fields = args.get("fields").cloned().unwrap_or_default();
    if let Ok(old) = record(state, table, id)
        && let (Some(old), Some(new)) = (old.as_object(), fields.as_object())
    {
        let mut merged = old.clone();
        merged.extend(new.clone());
        fields = merged.into();
    }
    put(state, &["tables", table, id], Some(fields));
}

fn append(tool: &Definition, state: &mut Value, args: &Value) -> Result<String, String> {
    let lists = state.as_object_mut().ok_or("the world has no lists")?;
    let list = lists.entry(&tool.list).or_insert_with(|| json!([]));
    let list = list.as_array_mut().ok_or("the world has no such list")?;
    list.push(args.clone());
    let number = tool.number + list.len() as u64;
    Ok(tool.result.replace("{number}", &number.to_string()))
}

/// Sets the value at a path of objects, or removes it. Missing objects are created.
fn put(state: &mut Value, path: &[&str], value: Option<Value>) {
    let Some((last, parents)) = path.split_last() else {
        return;
    };
    let mut at = state.as_object_mut();
    for name in parents {
        let entry = at.map(|object| object.entry(*name).or_insert_with(|| json!({})));
        at = entry.and_then(Value::as_object_mut);
    }
    match (at, value) {
        (Some(object), Some(value)) => drop(object.insert((*last).to_owned(), value)),
        (Some(object), None) => drop(object.shift_remove(*last)),
        (None, _) => {}
    }
}

fn file<'s>(state: &'s Value, path: &str) -> Result<&'s str, String> {
    let found = state.get("files").and_then(|files| files.get(path));
    let content = found.and_then(Value::as_str);
    content.ok_or_else(|| format!("there is no file {path}"))
}

fn paths<'s>(state: &'s Value, section: &str) -> impl Iterator<Item = &'s String> {
    let found = state.get(section).and_then(Value::as_object);
    found.into_iter().flat_map(Map::keys)
}

fn check_parent(state: &Value, path: &str) -> Result<(), String> {
    let Some((parent, _)) = path.rsplit_once('/') else {
        return Ok(());
    };
    let inside = format!("{parent}/");
    let is_known = paths(state, "directories").any(|known| known == parent)
        || paths(state, "files").any(|known| known.starts_with(&inside));
    if is_known {
        return Ok(());
    }
    Err(format!(
        "there is no directory {parent}; create it with make_directory"
    ))
}

fn list(state: &Value, directory: &str) -> Result<String, String> {
    let directory = directory.trim_end_matches('/');
    let inside = match directory {
        "" | "." => String::new(),
        directory => format!("{directory}/"),
    };
    let files = paths(state, "files").cloned();
    let directories = paths(state, "directories").map(|path| format!("{path}/"));
    let mut found: Vec<String> = files.chain(directories).collect();
    found.retain(|path| path.starts_with(&inside));
    found.sort();
    if found.is_empty() && !inside.is_empty() {
        return Err(format!("there is no directory {directory}"));
    }
    Ok(found.join("\n"))
}

fn search(state: &Value, text: &str, directory: &str) -> String {
    let directory = directory.trim_end_matches('/').trim_start_matches('.');
    let mut found = String::new();
    for path in paths(state, "files").filter(|path| path.starts_with(directory)) {
        let content = file(state, path).unwrap_or_default();
        for (index, line) in content.lines().enumerate() {
            if line.contains(text) {
                let _ = writeln!(found, "{path}:{}: {line}", index + 1);
            }
        }
    }
    if found.is_empty() {
        found.push_str("no hits");
    }
    found
}

fn record<'s>(state: &'s Value, table: &str, id: &str) -> Result<&'s Value, String> {
    let found = state.get("tables").and_then(|tables| tables.get(table));
    let found = found.and_then(|table| table.get(id));
    found.ok_or_else(|| format!("the table `{table}` has no record `{id}`"))
}

fn find(state: &Value, table: &str, args: &Value) -> Result<String, String> {
    let tables = state.get("tables");
    let records = tables.and_then(|tables| tables.get(table)?.as_object());
    let records = records.ok_or_else(|| format!("there is no table `{table}`"))?;
    let wanted = args.get("where").and_then(Value::as_object);
    let fits = |record: &Value| {
        let mut wanted = wanted.into_iter().flatten();
        wanted.all(|(name, value)| record.get(name) == Some(value))
    };
    let limit = args.get("limit").and_then(Value::as_u64).unwrap_or(20);
    let found = records.iter().filter(|(_, record)| fits(record));
    let found = found.take(usize::try_from(limit).unwrap_or(usize::MAX));
    let lines: Vec<String> = found
        .map(|(id, record)| format!("{id}: {record}"))
        .collect();
    Ok(match lines.as_slice() {
        [] => "no record matches".to_owned(),
        _ => lines.join("\n"),
    })
}

fn run_tests(state: &Value, directory: &str) -> Result<String, String> {
    let tests = state.get("tests").and_then(|tests| tests.get(directory));
    let Some(tests) = tests else {
        return Err(format!("there are no tests in {directory}"));
    };
    let needs = tests.get("needs").and_then(Value::as_array);
    for path in needs.into_iter().flatten().filter_map(Value::as_str) {
        file(state, path).map_err(|error| format!("the tests cannot run: {error}"))?;
    }
    let result = tests.get("result").and_then(Value::as_str);
    Ok(result.unwrap_or_default().to_owned())
}
