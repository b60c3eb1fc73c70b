//! One tool: a table `[tools.NAME]`.

use std::path::Path;

use plaincall_call::{Effect, SpecError, ToolSpec, did_you_mean};
use toml::de::DeValue;

use super::choice::{Choice, choice};
use super::mistake::Mistakes;
use super::retry::retry;
use super::table::{Entry, Table};
use super::{parameters, size, time};
use crate::command::{Command, CommandPlace};
use crate::tool::Tool;
use crate::tool_policy::Dependents;

/// What `[tools.NAME]` may hold.
const KEYS: [&str; 18] = [
    "description",
    "parameters",
    "command",
    "shell",
    "effect",
    "timeout",
    "grace",
    "retry",
    "dependents",
    "fallback",
    "finishes",
    "max_concurrent",
    "exclusive",
    "output_limit",
    "directory",
    "environment",
    "positional",
    "body",
];

const EFFECTS: [Choice<Effect>; 3] = [
    ("read", "changes nothing", Effect::Read),
    (
        "idempotent",
        "twice is the same as once",
        Effect::Idempotent,
    ),
    ("write", "", Effect::Write),
];

const DEPENDENTS: [Choice<bool>; 2] = [
    ("skip", "they do not run", false),
    ("run", "they run and see that it failed", true),
];

/// One tool; `None` after a mistake that leaves nothing to go on with.
pub(super) fn tool(
    table: &Table<'_, '_>,
    path: &Path,
    mistakes: &mut Mistakes<'_>,
) -> Option<Tool> {
    table.refuse_other_keys("a tool", &KEYS, mistakes);
    let spec = spec(table, mistakes);
    let command = command(table, path, mistakes);
    let settings = settings(table, spec.as_ref().map(|spec| spec.effect), mistakes);
    let tool = match Tool::command(spec?, command?) {
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
    Some(settings.into_iter().fold(tool, |tool, set| set(tool)))
}

/// Something that is set in a tool.
type Setting = Box<dyn FnOnce(Tool) -> Tool>;

/// How calls of the tool may run.
fn settings(
    table: &Table<'_, '_>,
    effect: Option<Effect>,
    mistakes: &mut Mistakes<'_>,
) -> Vec<Setting> {
    let mut settings: Vec<Setting> = Vec::new();
    for entry in table.entries() {
        settings.extend(setting(&entry, effect, mistakes));
    }
    if let (Some(_), Some(fallback)) = (table.get("dependents"), table.get("fallback")) {
        let message =
            "a tool has either `dependents` or `fallback`: with a fallback its dependents run";
        mistakes.add(fallback.key_span(), message);
    }
    settings
}

fn setting(
    entry: &Entry<'_, '_>,
    effect: Option<Effect>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Setting> {
    Some(match entry.key() {
        "timeout" => {
            let timeout = time::time(entry, mistakes)?;
            Box::new(move |tool| tool.timeout(timeout))
        }
        "grace" => {
            let grace = time::time_or_none(entry, mistakes)?;
            Box::new(move |tool| tool.grace(grace))
        }
        "retry" => {
            let retry = retry(entry, effect, mistakes)?;
            Box::new(move |tool| tool.retry(retry))
        }
        "dependents" => {
            let run = choice(entry, "way for dependents", &DEPENDENTS, mistakes)?;
            let dependents = if run {
                Dependents::Run
            } else {
                Dependents::Skip
            };
            Box::new(move |tool| tool.dependents(dependents))
        }
        "fallback" => {
            let fallback = Dependents::Fallback(entry.string(mistakes)?.to_owned());
            Box::new(move |tool| tool.dependents(fallback))
        }
        "finishes" if entry.boolean(mistakes)? => Box::new(Tool::finishes),
        "max_concurrent" => {
            let count = entry.count_from(1, mistakes)?;
            Box::new(move |tool| tool.max_concurrent(count))
        }
        "exclusive" if entry.boolean(mistakes)? => Box::new(Tool::exclusive),
        _ => return None,
    })
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
            let names = spec
                .parameters()
                .iter()
                .map(|one| format!("`{}`", one.name));
            let names: Vec<String> = names.collect();
            match names.as_slice() {
                [] => "; the tool has no parameters".to_owned(),
                names => format!(
                    "; the parameters are {}{}",
                    names.join(", "),
                    did_you_mean(name, spec.parameters().iter().map(|one| one.name.as_str()))
                ),
            }
        }
        _ => String::new(),
    }
}

pub(super) fn effect(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Effect> {
    choice(entry, "effect", &EFFECTS, mistakes)
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
    if let Some(entry) = table.get("output_limit") {
        command = command.output_limit(size::size(&entry, mistakes)?);
    }
    if let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) {
        command = command.tools_directory(folder);
    }
    Some(command)
}

fn command_line<'t>(entry: &Entry<'t, '_>, mistakes: &mut Mistakes<'_>) -> Option<Vec<&'t str>> {
    if let DeValue::String(line) = entry.value() {
        let message = format!(
            "`command` must be a list: the program, then each argument; for a shell command line, write `shell = \"{line}\"`"
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
        (Some("properties"), Some(_)) => {
            let entry = table.get("parameters");
            entry.map_or(table.name_span(), |entry| {
                parameters::schema_span(&entry, &error.at)
            })
        }
        (Some(key), _) => table
            .get(key)
            .map_or(table.name_span(), |entry| entry.span()),
        (None, _) => table.name_span(),
    }
}
