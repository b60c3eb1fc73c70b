//! `tools.toml`: tools that are commands, written down in a file.
//!
//! ```toml
//! [tools.search]
//! description = "Searches the files of the project for a text."
//! parameters = { text = "string", folder = "string?" }
//! command = ["grep", "-rn", "-e", "{text}", "--", "{folder}"]
//! directory = "{directory:tools}"
//! effect = "read"
//! timeout = "10s"
//! ```

mod mistake;
mod parameters;
mod table;
mod time;

use std::path::Path;

use plaincall_call::{Effect, SpecError, ToolSpec};
use toml::de::{DeTable, DeValue};

pub use mistake::{Mistake, ToolsFileError};

use crate::command::{Command, CommandPlace};
use crate::tool::Tool;
use mistake::Mistakes;
use table::{Entry, Table};

/// What `[tools.NAME]` may hold.
const KEYS: [&str; 12] = [
    "description",
    "parameters",
    "command",
    "shell",
    "timeout",
    "effect",
    "max_concurrent",
    "exclusive",
    "directory",
    "environment",
    "positional",
    "body",
];

/// Reads the text of a tools file.
///
/// `path` is where the file lies; it must be absolute for `{directory:tools}`, which stands for its folder, to mean
/// anything. Nothing is read from it.
///
/// ```
/// let text = r#"
/// [tools.today]
/// command = ["date", "+%F"]
/// effect = "read"
/// "#;
/// let tools = plaincall::read_tools(text, "/home/me/tools.toml")?;
/// assert_eq!(tools[0].name(), "today");
///
/// let error = plaincall::read_tools("[tools.today]\ncommand = \"date\"", "/home/me/tools.toml").unwrap_err();
/// assert_eq!(error.mistakes[0].line, 2);
/// # Ok::<(), plaincall::ToolsFileError>(())
/// ```
///
/// # Errors
/// All mistakes of the file, each with its line and column.
pub fn read_tools(text: &str, path: impl AsRef<Path>) -> Result<Vec<Tool>, ToolsFileError> {
    let mut mistakes = Mistakes::new(text);
    let (document, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let span = error.span().unwrap_or_default();
        if error.message() == "duplicate key" {
            let key = text.get(span.clone()).unwrap_or_default();
            mistakes.add(span, format!("`{key}` stands here for the second time"));
        } else {
            mistakes.add(span, error.message());
        }
    }
    // Behind a mistake in the form, the rest may mean something else than it seems to.
    mistakes.is_toml = errors.is_empty();
    let tools = if mistakes.is_toml {
        tools(document.get_ref(), path.as_ref(), &mut mistakes)
    } else {
        Vec::new()
    };
    mistakes.into_result(tools)
}

fn tools(document: &DeTable<'_>, path: &Path, mistakes: &mut Mistakes<'_>) -> Vec<Tool> {
    let mut tools = Vec::new();
    let mut has_tools = false;
    for (key, value) in document {
        if key.get_ref() != "tools" {
            let name = key.get_ref();
            mistakes.add(
                key.span(),
                format!("`{name}` means nothing here; a tool begins with `[tools.NAME]`"),
            );
            continue;
        }
        let DeValue::Table(table) = value.get_ref() else {
            let kind = table::kind(value.get_ref());
            mistakes.add(
                value.span(),
                format!("`tools` is {kind}; write `[tools.NAME]` for each tool"),
            );
            return tools;
        };
        for (name, value) in table {
            has_tools = true;
            let DeValue::Table(definition) = value.get_ref() else {
                let kind = table::kind(value.get_ref());
                let name = name.get_ref();
                mistakes.add(
                    value.span(),
                    format!("the tool `{name}` is {kind}; write `[tools.{name}]`"),
                );
                continue;
            };
            let before = mistakes.count();
            let table = Table::new(name, definition);
            let tool = tool(&table, path, mistakes);
            tools.extend(tool.filter(|_| mistakes.count() == before));
        }
    }
    if !has_tools && mistakes.count() == 0 {
        mistakes.add(
            0..0,
            "the file defines no tool; a tool begins with `[tools.NAME]`",
        );
    }
    tools
}

/// One tool; `None` after a mistake that leaves nothing to go on with.
fn tool(table: &Table<'_, '_>, path: &Path, mistakes: &mut Mistakes<'_>) -> Option<Tool> {
    table.refuse_other_keys(&KEYS, mistakes);
    let spec = spec(table, mistakes);
    let command = command(table, path, mistakes);
    let timeout = table
        .get("timeout")
        .and_then(|entry| time::timeout(&entry, mistakes));
    let count = table
        .get("max_concurrent")
        .and_then(|entry| entry.count(mistakes));
    let exclusive = table
        .get("exclusive")
        .and_then(|entry| entry.boolean(mistakes));
    let mut tool = match Tool::command(spec?, command?) {
        Ok(tool) => tool,
        Err(error) => {
            for problem in error.problems {
                let span = span_in_command(table, problem.place);
                let placeholder = problem.placeholder.as_deref().unwrap_or_default();
                let span = mistakes.narrow(span, placeholder, problem.occurrence);
                mistakes.add(span, problem.message);
            }
            return None;
        }
    };
    if let Some(timeout) = timeout {
        tool = tool.timeout(timeout);
    }
    if let Some(count) = count {
        tool = tool.max_concurrent(count);
    }
    if exclusive == Some(true) {
        tool = tool.exclusive();
    }
    Some(tool)
}

fn spec(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<ToolSpec> {
    let mut spec = ToolSpec::new(table.name());
    if let Some(entry) = table.get("description") {
        spec = spec.describe(entry.string(mistakes).unwrap_or_default());
    }
    if let Some(entry) = table.get("effect") {
        spec = spec.effect(effect(&entry, mistakes).unwrap_or_default());
    }
    if let Some(entry) = table.get("positional") {
        let names = entry.strings(mistakes)?;
        spec = spec.positional(names);
    }
    if let Some(entry) = table.get("body") {
        spec = spec.body(entry.string(mistakes)?);
    }
    if let Some(entry) = table.get("parameters") {
        spec = parameters::parameters(spec, &entry, mistakes)?;
    }
    if let Err(error) = spec.check() {
        let names = named_parameters(&spec, &error);
        mistakes.add(
            span_in_spec(table, &error),
            format!("{}{names}", error.message),
        );
        return None;
    }
    Some(spec)
}

/// What could have been written, where `body` or `positional` names no parameter.
fn named_parameters(spec: &ToolSpec, error: &SpecError) -> String {
    let mut segments = error.at.split('/').skip(1);
    let name = match (segments.next(), segments.next()) {
        (Some("body"), None) => spec.body.as_deref(),
        (Some("positional"), Some(index)) => {
            let index: Option<usize> = index.parse().ok();
            let positional = spec.positional.as_deref().unwrap_or_default();
            index
                .and_then(|index| positional.get(index))
                .map(String::as_str)
        }
        _ => None,
    };
    match name {
        Some(name) if spec.get(name).is_none() => {
            let names = spec.parameters.iter().map(|one| format!("`{}`", one.name));
            let names: Vec<String> = names.collect();
            match names.as_slice() {
                [] => "; the tool has no parameters".to_owned(),
                names => format!("; the parameters are {}", names.join(", ")),
            }
        }
        _ => String::new(),
    }
}

fn effect(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Effect> {
    match entry.string(mistakes)? {
        "read" => Some(Effect::Read),
        "idempotent" => Some(Effect::Idempotent),
        "write" => Some(Effect::Write),
        other => {
            let message = format!(
                "there is no effect `{other}`; write `read` (changes nothing), `idempotent` (twice is the same as once) or `write`"
            );
            mistakes.add(entry.span(), message);
            None
        }
    }
}

fn command(table: &Table<'_, '_>, path: &Path, mistakes: &mut Mistakes<'_>) -> Option<Command> {
    let mut command = match (table.get("command"), table.get("shell")) {
        (Some(entry), None) => Command::new(command_line(&entry, mistakes)?),
        (None, Some(entry)) => Command::shell(entry.string(mistakes)?),
        (Some(_), Some(shell)) => {
            let message = "a tool has either `command` or `shell`; this one has both";
            mistakes.add(shell.key_span(), message);
            return None;
        }
        (None, None) => {
            let name = table.name();
            let message = format!(
                "the tool `{name}` says nothing about what to run; write `command = [\"program\", \"argument\"]` or `shell = \"script\"`"
            );
            mistakes.add(table.name_span(), message);
            return None;
        }
    };
    if let Some(entry) = table.get("directory") {
        command = command.directory(entry.string(mistakes)?);
    }
    if let Some(entry) = table.get("environment") {
        command = command.environment(entry.strings(mistakes)?);
    }
    if let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) {
        command = command.tools_directory(folder);
    }
    Some(command)
}

fn command_line<'t>(entry: &Entry<'t, '_>, mistakes: &mut Mistakes<'_>) -> Option<Vec<&'t str>> {
    if let DeValue::String(line) = entry.value() {
        let message = format!(
            "`command` is a list, one text for the program and one for each argument; for a line that a shell is to read write `shell = \"{line}\"`"
        );
        mistakes.add(entry.span(), message);
        return None;
    }
    entry.strings(mistakes)
}

fn span_in_command(table: &Table<'_, '_>, place: CommandPlace) -> std::ops::Range<usize> {
    let line = || table.get("command").or_else(|| table.get("shell"));
    let entry = match place {
        CommandPlace::Whole | CommandPlace::Element(_) => line(),
        CommandPlace::Directory => table.get("directory").or_else(line),
        CommandPlace::Environment(_) => table.get("environment"),
    };
    match (entry, place) {
        (Some(entry), CommandPlace::Element(index) | CommandPlace::Environment(index)) => {
            entry.element_span(index)
        }
        (Some(entry), _) => entry.span(),
        (None, _) => table.name_span(),
    }
}

fn span_in_spec(table: &Table<'_, '_>, error: &SpecError) -> std::ops::Range<usize> {
    let mut segments = error.at.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some(key), Some(index)) if key == "positional" => {
            let entry = table.get(key);
            entry.map_or(table.name_span(), |entry| {
                entry.element_span(index.parse().unwrap_or(0))
            })
        }
        (Some("parameters"), Some(name)) => {
            let entry = table.get("parameters");
            entry.map_or(table.name_span(), |entry| {
                parameters::parameter_span(&entry, name)
            })
        }
        (Some(key), _) => table
            .get(key)
            .map_or(table.name_span(), |entry| entry.span()),
        (None, _) => table.name_span(),
    }
}
