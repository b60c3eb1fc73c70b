//! `plaincall config`: what holds, and where it comes from.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value, json};

use crate::config::layer::{Place, below};
use crate::config::schema::{Part, Shape, schema};
use crate::config::{Configuration, From, Origin, Project, Sources, trust};
use crate::environment::Environment;
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, remark};
use crate::visible::harmless;

/// What is shown in the place of a value that may be a secret.
const HIDDEN: &str = "(not shown)";

/// Show the configuration that `ask` and `chat` have here, and where each value comes from.
///
/// It is made of layers, and the nearest that says something counts: what options say, the environment
/// (`PLAINCALL_MODEL`, `PLAINCALL_LIMITS_TURNS` and so on), the project's file, the user's own file, and what holds by
/// itself. The user's file is `plaincall/config.toml` in the directory that `XDG_CONFIG_HOME` names, or in `~/.config`.
/// The project's file is the first `plaincall.toml` in the working directory or above it.
///
/// A project's file comes from whoever wrote the project. Until you trust it, nothing of it counts but its rules that
/// deny, and those by which somebody is asked. What you trust is the text that you have seen, and those of the files that
/// it names: when one changes, you are told, and it does not count. No project's file may say where a key is.
///
/// Secrets are not shown: no keys, and no values of `env` and `headers`.
///
/// Exit status: 0; 2 if a file has mistakes, or for wrong usage; 1 if something cannot be read or written.
#[derive(Args, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is a flag of the command line"
)]
pub(crate) struct ConfigOptions {
    /// Print one JSON object: `files`, and `values`, each with `path`, `value` and `from`.
    #[arg(long)]
    json: bool,

    /// Print the JSON Schema of a configuration file.
    #[arg(long, conflicts_with = "json")]
    schema: bool,

    /// Show the project's file and the files that it names, and trust them from now on.
    #[arg(long, conflicts_with_all = ["json", "schema"])]
    trust: bool,

    /// Do not trust the project's file any more.
    #[arg(long, conflicts_with_all = ["json", "schema", "trust"])]
    distrust: bool,

    #[command(flatten)]
    files: FileOptions,
}

/// Where the configuration is read from.
#[derive(Args, Clone, Debug, Default)]
#[command(next_help_heading = "Configuration")]
pub(crate) struct FileOptions {
    /// The configuration file, in the place of the user's own. `PLAINCALL_CONFIG` names it too.
    #[arg(long, value_name = "FILE")]
    pub(crate) config: Option<PathBuf>,

    /// Look for no project's file.
    #[arg(long)]
    pub(crate) no_project: bool,
}

impl FileOptions {
    /// These files, with what other options say on top.
    pub(crate) fn sources(&self, options: super::Layer) -> Sources {
        Sources {
            user_file: self.config.clone(),
            no_project: self.no_project,
            options,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// What keeps it from telling.
pub(crate) fn config(options: &ConfigOptions, output: &mut Output) -> Outcome {
    if options.schema {
        let schema = serde_json::to_string_pretty(&schema());
        let schema = schema.map_err(|error| Failure::Broken(error.to_string()))?;
        output.text(format_args!("{schema}\n"))?;
        output.flush()?;
        return Ok(Status::Good);
    }
    let sources = options.files.sources(super::Layer::default());
    let configuration = Configuration::load(sources, &Environment::read())?;
    if options.trust || options.distrust {
        return settle(&configuration, options.trust, output);
    }
    if options.json {
        output.json_line(&as_json(&configuration))?;
    } else {
        show(&configuration, output)?;
    }
    output.flush()?;
    Ok(Status::Good)
}

/// Trusts the project's file, or does not any more.
fn settle(configuration: &Configuration, is_trusted: bool, output: &mut Output) -> Outcome {
    let Some(project) = &configuration.project else {
        return Err(Failure::Usage(
            "there is no project's file: no `plaincall.toml` here or in a directory above"
                .to_owned(),
        ));
    };
    let Some(state) = &configuration.state else {
        return Err(Failure::Broken(
            "nowhere to remember it: neither `XDG_STATE_HOME` nor `HOME` is set".to_owned(),
        ));
    };
    if is_trusted {
        show_project(project, output)?;
        output.flush()?;
    }
    trust::set(
        state,
        &project.path,
        is_trusted.then_some(project.sha256.as_str()),
    )?;
    let path = project.path.display();
    remark(&if is_trusted {
        format!(
            "{path} is trusted as it is shown above, until one of these texts changes; `plaincall config --distrust` takes that back"
        )
    } else {
        format!("{path} is not trusted any more")
    });
    Ok(Status::Good)
}

fn show_project(project: &Project, output: &mut Output) -> Result<(), Failure> {
    let mut print = |path: &Path, text: &str| {
        let text = harmless(text);
        let end = if text.ends_with('\n') { "" } else { "\n" };
        let path = harmless(&path.display().to_string());
        output.text(format_args!("--- {path}\n{text}{end}"))
    };
    print(&project.path, &project.text)?;
    for path in &project.named {
        match std::fs::read(path) {
            Ok(bytes) => print(path, &String::from_utf8_lossy(&bytes))?,
            Err(error) => print(path, &format!("(cannot be read: {error})"))?,
        }
    }
    Ok(())
}

/// One value that holds.
struct Shown {
    path: String,
    value: Value,
    origin: Origin,
}

fn show(configuration: &Configuration, output: &mut Output) -> Result<(), Failure> {
    for (_, line) in files(configuration) {
        output.text(format_args!("# {}\n", harmless(&line)))?;
    }
    output.text(format_args!("\n"))?;
    let shown = all(configuration);
    let lines: Vec<(String, String)> = shown
        .iter()
        .map(|shown| {
            let value = in_toml(&shown.value);
            (
                harmless(&format!("{} = {value}", shown.path)),
                harmless(&from(&shown.origin)),
            )
        })
        .collect();
    let width = lines.iter().map(|(line, _)| line.chars().count());
    let width = width.filter(|width| *width <= 60).max().unwrap_or(0);
    let (dim, plain) = if output.has_color {
        let dim = crate::picture::palette::DIM;
        (format!("{dim}"), format!("{dim:#}"))
    } else {
        (String::new(), String::new())
    };
    for (line, from) in lines {
        output.text(format_args!("{line:width$}  {dim}# {from}{plain}\n"))?;
    }
    Ok(())
}

/// The files, and what is to be said about each.
fn files(configuration: &Configuration) -> Vec<(Value, String)> {
    let mut files = Vec::new();
    if let Some(path) = &configuration.user_file {
        let is_there = path.exists();
        let state = if is_there { "" } else { " (not there)" };
        files.push((
            json!({"from": "user", "file": path, "exists": is_there}),
            format!("user: {}{state}", path.display()),
        ));
    }
    if let Some(project) = &configuration.project {
        let state = match (project.is_trusted, project.left_out.is_empty()) {
            (true, _) => "trusted".to_owned(),
            (false, true) => "not trusted".to_owned(),
            (false, false) => format!(
                "not trusted, so this does not count: {}; `plaincall config --trust` shows it and trusts it",
                project.left_out.join(", ")
            ),
        };
        files.push((
            json!({
                "from": "project",
                "file": project.path,
                "trusted": project.is_trusted,
                "left_out": project.left_out,
            }),
            format!("project: {} ({state})", project.path.display()),
        ));
    }
    files
}

fn as_json(configuration: &Configuration) -> Value {
    let files: Vec<Value> = files(configuration)
        .into_iter()
        .map(|(file, _)| file)
        .collect();
    let values: Vec<Value> = all(configuration)
        .into_iter()
        .map(
            |Shown {
                 path,
                 value,
                 origin,
             }| {
                let mut from = Map::new();
                from.insert("from".to_owned(), origin.from.to_string().into());
                match origin.place {
                    Some(Place::File { line, .. }) => from.insert("line".to_owned(), line.into()),
                    Some(Place::Variable(name)) => from.insert("variable".to_owned(), name.into()),
                    Some(Place::Option(name)) => from.insert("option".to_owned(), name.into()),
                    None => None,
                };
                let mut shown = Map::new();
                shown.insert("path".to_owned(), path.into());
                shown.insert("value".to_owned(), value);
                shown.extend(from);
                Value::Object(shown)
            },
        )
        .collect();
    json!({"files": files, "values": values})
}

fn from(origin: &Origin) -> String {
    match &origin.place {
        Some(place @ Place::File { .. }) => format!("{}, {place}", origin.from),
        Some(place) => place.to_string(),
        None => origin.from.to_string(),
    }
}

/// All values that hold, in the order of the schema.
fn all(configuration: &Configuration) -> Vec<Shown> {
    let mut shown = Vec::new();
    let schema = schema();
    let values = Value::Object(configuration.values.clone());
    collect(configuration, "", Part(&schema), &values, &mut shown);
    for (path, value) in configuration.defaults() {
        if !shown.iter().any(|shown| shown.path == path) {
            let origin = Origin {
                from: From::Default,
                place: None,
            };
            let path = path.to_owned();
            shown.push(Shown {
                path,
                value,
                origin,
            });
        }
    }
    // Each table together, behind what is alone.
    let order = ["builtin", "mcp", "limits", "models", "rules"];
    shown.sort_by_key(|shown| {
        let place = order.iter().position(|table| shown.path.starts_with(table));
        place.map_or(0, |place| place + 1)
    });
    shown
}

fn collect(
    configuration: &Configuration,
    path: &str,
    part: Part<'_>,
    value: &Value,
    shown: &mut Vec<Shown>,
) {
    let mut add = |value: Value| {
        shown.push(Shown {
            path: path.to_owned(),
            value,
            origin: configuration.origin(path),
        });
    };
    match (part.shape(), value) {
        (Shape::Table(keys), Value::Object(values)) if !path.starts_with("rules[") => {
            for (key, inner) in keys {
                if let Some(value) = values.get(key) {
                    collect(configuration, &below(path, key), Part(inner), value, shown);
                }
            }
        }
        (Shape::Names(Some(inner)), Value::Object(values)) => {
            let is_secret = path.starts_with("mcp.servers.")
                && matches!(path.rsplit('.').next(), Some("env" | "headers"));
            for (key, value) in values {
                let value = if is_secret {
                    &Value::String(HIDDEN.to_owned())
                } else {
                    value
                };
                collect(configuration, &below(path, key), inner, value, shown);
            }
        }
        (Shape::List(inner), Value::Array(list)) if path == "rules" => {
            for (index, value) in list.iter().enumerate() {
                collect(
                    configuration,
                    &format!("rules[{index}]"),
                    inner,
                    value,
                    shown,
                );
            }
        }
        (Shape::Text, Value::String(text)) => add(without_password(text).into()),
        (_, value) => add(value.clone()),
    }
}

/// An address without what stands before `@` in it.
fn without_password(text: &str) -> String {
    let parts = text.split_once("://").and_then(|(scheme, rest)| {
        let end = rest.find('/').unwrap_or(rest.len());
        let (host, path) = rest.split_at_checked(end)?;
        let (_, host) = host.rsplit_once('@')?;
        Some(format!("{scheme}://{HIDDEN}@{host}{path}"))
    });
    parts.unwrap_or_else(|| text.to_owned())
}

/// A value as it is written in TOML, on one line.
fn in_toml(value: &Value) -> String {
    match value {
        Value::Object(table) => {
            let pairs: Vec<String> = table
                .iter()
                .map(|(key, value)| format!("{} = {}", below("", key), in_toml(value)))
                .collect();
            format!("{{ {} }}", pairs.join(", "))
        }
        Value::Array(list) => {
            let list: Vec<String> = list.iter().map(in_toml).collect();
            format!("[{}]", list.join(", "))
        }
        // Texts have the same form in JSON and TOML, as far as it matters for people.
        other => other.to_string(),
    }
}
