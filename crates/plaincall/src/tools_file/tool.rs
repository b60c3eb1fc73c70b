//! The tables `[tools.NAME]`.

use std::path::Path;

use plaincall_config::tools::{self, RetryTable, ToolTable};
use plaincall_config::{Document, Location, Node, Value, child};
use plaincall_tool::{CallExample, Effect, Parameter, ParameterKind, Schema, SpecError, ToolSpec};
use serde_json::{Map, Value as Json};

use crate::command::{Command, CommandLocation, parameters_like};
use crate::tool::Tool;
use crate::tool_policy::{Dependents, Retry};
use crate::toolbox::NO_RETRY_OF_WRITES;

/// Reads the tool at a pointer; `None` if it has a problem.
pub(super) fn tool(document: &mut Document, name: &str, at: &str, path: &Path) -> Option<Tool> {
    let line = document.root().get(&child(at, "command"));
    if let Some(Value::Text(line)) = line.map(|node| &node.value) {
        let message = format!(
            "`command` must be a list: the program, then each argument; for a shell command line, write `shell = \"{line}\"`"
        );
        document.problem(&Location::value(child(at, "command")), message);
    }
    let before = document.count();
    let table: ToolTable = document.read(at)?;
    let mut reader = Reader { document, name, at };
    let retry = reader.retry(&table);
    if table.dependents.is_some() && table.fallback.is_some() {
        let message =
            "`dependents` and `fallback` cannot both be set; with a fallback, dependents run";
        reader.problem(&Location::key(reader.below("fallback")), message);
    }
    let spec = reader.spec(&table);
    let command = reader.command(&table, path);
    let mut tool = reader.with_command(&table, spec?, command?)?;
    if document.count() > before {
        return None;
    }
    let policy = &mut tool.policy;
    policy.timeout = table.timeout.map_or(policy.timeout, |time| time.0);
    policy.grace = table.grace.map_or(policy.grace, |time| time.0);
    policy.retry = retry;
    policy.max_concurrent = table.max_concurrent;
    policy.dependents = match (table.fallback, table.dependents) {
        (Some(fallback), _) => Dependents::Fallback(fallback),
        (None, Some(tools::Dependents::Run)) => Dependents::Run,
        (None, Some(tools::Dependents::Skip) | None) => Dependents::Skip,
    };
    policy.finishes = table.finishes;
    policy.exclusive = table.exclusive;
    Some(tool)
}

struct Reader<'d> {
    document: &'d mut Document,
    name: &'d str,
    at: &'d str,
}

impl Reader<'_> {
    fn below(&self, pointer: &str) -> String {
        format!("{}/{pointer}", self.at)
    }

    fn problem(&mut self, place: &Location, message: impl Into<String>) {
        self.document.problem(place, message);
    }

    /// Returns whether none of these keys has a problem.
    fn are_sound(&self, keys: &[&str]) -> bool {
        let mut keys = keys.iter();
        keys.all(|key| !self.document.is_wrong(&self.below(key)))
    }

    fn retry(&mut self, table: &ToolTable) -> Option<Retry> {
        let RetryTable {
            attempts,
            first_wait,
            longest_wait,
            ..
        } = table.retry?;
        if table.effect.unwrap_or_default() == Effect::Write && self.are_sound(&["effect"]) {
            self.problem(&Location::key(self.below("retry")), NO_RETRY_OF_WRITES);
        }
        if attempts < 2 {
            let message = "`retry` must be an integer of at least 2: the number of attempts, including the first";
            self.problem(&Location::value(self.below("retry/attempts")), message);
        }
        let mut retry = Retry::attempts(attempts);
        retry.first_wait = first_wait.map_or(retry.first_wait, |time| time.0);
        let default = retry.longest_wait.max(retry.first_wait);
        retry.longest_wait = longest_wait.map_or(default, |time| time.0);
        if retry.longest_wait < retry.first_wait {
            let message =
                "`longest_wait` is shorter than `first_wait`; it must be at least as long";
            self.problem(&Location::value(self.below("retry/longest_wait")), message);
        }
        Some(retry)
    }

    fn spec(&mut self, table: &ToolTable) -> Option<ToolSpec> {
        if !self.are_sound(&["parameters", "positional", "body", "examples"]) {
            return None;
        }
        let mut spec = ToolSpec::new(self.name)
            .describe(table.description.as_deref().unwrap_or_default())
            .effect(table.effect.unwrap_or_default());
        if let Some(names) = &table.positional {
            spec = spec.positional(names);
        }
        if let Some(name) = &table.body {
            spec = spec.body(name);
        }
        let parameters = table.parameters.clone().unwrap_or_default();
        let is_schema = is_schema(&parameters);
        spec = if is_schema {
            self.by_schema(spec, parameters)?
        } else {
            self.short_form(spec, &parameters)?
        };
        for given in &table.examples {
            let mut example =
                CallExample::new(given.arguments.clone()).comment(given.comment.as_str());
            example.result.clone_from(&given.result);
            example.question.clone_from(&given.question);
            example.answer.clone_from(&given.answer);
            spec = spec.example(example);
        }
        if let Err(error) = spec.check() {
            let names = named_parameters(&spec, &error);
            let place = self.place_in_spec(&error.at, is_schema);
            self.problem(&place, format!("{}{names}", error.message));
            return None;
        }
        Some(spec)
    }

    fn by_schema(&mut self, spec: ToolSpec, schema: Map<String, Json>) -> Option<ToolSpec> {
        let at = self.below("parameters");
        if !schema.contains_key("type") {
            let message = "missing `type = \"object\"` in the JSON Schema of the parameters";
            self.problem(&Location::Key(at), message);
            return None;
        }
        let read = spec.parameters_from_schema(&Json::Object(schema));
        read.map_err(|error| self.problem(&Location::Key(at + &error.at), error.message))
            .ok()
    }

    fn short_form(&mut self, mut spec: ToolSpec, given: &Map<String, Json>) -> Option<ToolSpec> {
        let before = self.document.count();
        for (name, value) in given {
            let at = child(&self.below("parameters"), name);
            match value {
                Json::Object(schema) => {
                    let mut schema = schema.clone();
                    let is_optional = match schema.remove("optional") {
                        None => false,
                        Some(Json::Bool(is_optional)) => is_optional,
                        Some(_) => {
                            let place = Location::value(child(&at, "optional"));
                            self.problem(&place, "`optional` must be true or false");
                            continue;
                        }
                    };
                    let schema = Json::Object(schema);
                    if let Err(error) = Schema::new(schema.clone()).check() {
                        self.problem(&Location::Key(at + &error.at), error.message);
                        continue;
                    }
                    let parameter = Parameter::from_schema(name, schema);
                    spec = spec.parameter(if is_optional {
                        parameter.optional()
                    } else {
                        parameter
                    });
                }
                value => {
                    if let Some(parameter) = value.as_str().and_then(|kind| short(name, kind)) {
                        spec = spec.parameter(parameter);
                        continue;
                    }
                    let kind = self.document.root().get(&at).map(Node::kind_and_value);
                    let message = format!(
                        "the parameter `{name}` is {}; write string, number, integer, boolean, array, object or any, with `?` if it is optional, or a JSON Schema as a table",
                        kind.unwrap_or_default()
                    );
                    self.problem(&Location::Value(at), message);
                }
            }
        }
        (self.document.count() == before).then_some(spec)
    }

    fn command(&mut self, table: &ToolTable, path: &Path) -> Option<Command> {
        let keys = [
            "command",
            "shell",
            "directory",
            "environment",
            "output_limit",
        ];
        if !self.are_sound(&keys) {
            return None;
        }
        let mut command = match (&table.command, &table.shell) {
            (Some(elements), None) => Command::new(elements),
            // An editor may save the file with other line ends, and a shell takes CR for a part of a word.
            (None, Some(script)) => Command::shell(script.replace("\r\n", "\n")),
            (Some(_), Some(_)) => {
                let message = "`command` and `shell` cannot both be set; remove one";
                self.problem(&Location::key(self.below("shell")), message);
                return None;
            }
            (None, None) => {
                let message = format!(
                    "the tool `{}` has no command; write `command = [\"program\", \"argument\"]` or `shell = \"script\"`",
                    self.name
                );
                self.problem(&Location::key(self.at), message);
                return None;
            }
        };
        if let Some(directory) = &table.directory {
            command = command.directory(directory);
        }
        if let Some(limit) = table.output_limit {
            command = command.output_limit(limit.0);
        }
        if let Some(folder) = path.parent().filter(|folder| folder.is_absolute()) {
            command = command.tools_directory(folder);
        }
        Some(command.environment(&table.environment))
    }

    fn with_command(
        &mut self,
        table: &ToolTable,
        spec: ToolSpec,
        command: Command,
    ) -> Option<Tool> {
        let error = match Tool::command(spec, command) {
            Ok(tool) => return Some(tool),
            Err(error) => error,
        };
        let line = if table.command.is_some() {
            "command"
        } else {
            "shell"
        };
        for problem in error.problems {
            let pointer = match problem.place {
                CommandLocation::Element(index) => format!("{line}/{index}"),
                CommandLocation::Directory if table.directory.is_some() => "directory".to_owned(),
                CommandLocation::Whole | CommandLocation::Directory => line.to_owned(),
                CommandLocation::Environment(index) => format!("environment/{index}"),
            };
            let part = problem.placeholder.unwrap_or_default();
            let place = Location::Within(self.below(&pointer), part, problem.occurrence);
            self.problem(&place, problem.message);
        }
        None
    }

    /// Returns the place in the file of a problem in the definition.
    fn place_in_spec(&self, at: &str, is_schema: bool) -> Location {
        let (first, rest) = match at.trim_start_matches('/').split_once('/') {
            Some((first, rest)) => (first, rest),
            None => (at.trim_start_matches('/'), ""),
        };
        match (first, is_schema) {
            ("parameters", true) => {
                Location::Key(self.below(&format!("parameters/properties/{rest}")))
            }
            ("properties", true) => Location::Key(self.below(&format!("parameters{at}"))),
            ("parameters" | "properties", false) => {
                Location::Key(self.below(&format!("parameters/{rest}")))
            }
            ("", _) => Location::key(self.at),
            _ => Location::Value(self.at.to_owned() + at),
        }
    }
}

/// A short form may have a parameter `type`, but hardly one that is an object.
fn is_schema(parameters: &Map<String, Json>) -> bool {
    parameters.get("properties").is_some_and(Json::is_object)
        || parameters.get("type").is_some_and(|kind| kind == "object")
}

fn short(name: &str, text: &str) -> Option<Parameter> {
    match text.strip_suffix('?') {
        Some(kind) => Some(Parameter::new(name, ParameterKind::from_name(kind)?).optional()),
        None => Some(Parameter::new(name, ParameterKind::from_name(text)?)),
    }
}

/// Returns the end of a message about an unknown parameter in `body` or `positional`.
fn named_parameters(spec: &ToolSpec, error: &SpecError) -> String {
    let positional = spec.positional.as_deref().unwrap_or_default();
    let name = match error.at.strip_prefix("/positional/") {
        Some(index) => index
            .parse()
            .ok()
            .and_then(|index: usize| positional.get(index)),
        None => spec.body.as_ref().filter(|_| error.at == "/body"),
    };
    let Some(name) = name.filter(|name| spec.get(name).is_none()) else {
        return String::new();
    };
    let (parameters, near) = parameters_like(spec, name);
    format!("; {parameters}{near}")
}
