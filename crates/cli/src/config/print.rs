//! `plaincall config`: what holds, and where it comes from.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
)]

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value, json};

use crate::config::layer::{Place, below};
use crate::config::schema::{Part, Shape, schema};
use crate::config::{Configuration, From, Origin, Sources, settle};
use crate::environment::Environment;
use crate::output::Output;
use crate::status::{Failure, Outcome, Status};
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
/// it names: when one changes, you are told, and it does not count. No project's file may say where a key is. One that
/// belongs to another user does not count at all.
///
/// What may be a secret is not shown, by `--trust` either: no keys, no values of `env`, `headers` and `extra`, no arguments of MCP servers behind
/// the first, no queries of addresses.
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

    /// Show the project's file and the files that it names, ask on the terminal, and trust them from now on.
    ///
    /// Where there is no terminal nothing is trusted, and the fingerprint of these texts is named. With it as the value of
    /// this option nobody is asked.
    #[arg(
        long,
        value_name = "FINGERPRINT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["json", "schema"]
    )]
    trust: Option<String>,

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
            tells_of_project: false,
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
    let mut sources = options.files.sources(super::Layer::default());
    sources.tells_of_project = true;
    let configuration = Configuration::load(sources, &Environment::read())?;
    if let Some(fingerprint) = &options.trust {
        return settle::trust(&configuration, fingerprint, output);
    }
    if options.distrust {
        return settle::distrust(&configuration);
    }
    if options.json {
        output.json_line(&as_json(&configuration))?;
    } else {
        show(&configuration, output)?;
    }
    output.flush()?;
    let project = configuration.project.as_ref();
    match project.and_then(|project| Some((&project.path, project.flaw.as_ref()?))) {
        Some((path, flaw)) if flaw.is_mistake => Err(Failure::Configuration(format!(
            "{} {}, so nothing of it counts",
            path.display(),
            flaw.sentence
        ))),
        _ => Ok(Status::Good),
    }
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
        let problem = project.flaw.as_ref().map(|flaw| flaw.sentence.as_str());
        let state = match (problem, project.is_trusted, project.left_out.is_empty()) {
            (Some(problem), ..) => format!("nothing of it counts: it {problem}"),
            (None, true, _) => "trusted".to_owned(),
            (None, false, true) => "not trusted".to_owned(),
            (None, false, false) => format!(
                "not trusted, so this does not count: {}; `plaincall config --trust` shows it and asks whether to trust it",
                project.left_out.join(", ")
            ),
        };
        files.push((
            json!({
                "from": "project",
                "file": project.path,
                "trusted": project.is_trusted,
                "left_out": project.left_out,
                "problem": problem,
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
        (_, value) => add(without_secrets(path, value)),
    }
}

/// What is shown of a value. A key belongs into `key_env`, and people still write keys where there is room for them.
fn without_secrets(path: &str, value: &Value) -> Value {
    let hidden = || Value::String(HIDDEN.to_owned());
    let key = path.rsplit('.').next().unwrap_or_default();
    let is_servers = path.starts_with("mcp.servers.");
    match (key, value) {
        ("url", Value::String(url)) => address(url).into(),
        ("args", Value::Array(arguments)) if is_servers => {
            let shown = arguments.iter().enumerate().map(|(place, argument)| {
                match argument.as_str().map(|text| text.split_once('=')) {
                    Some(None) if place == 0 => argument.clone(),
                    Some(Some((name, _))) if place == 0 => format!("{name}={HIDDEN}").into(),
                    _ => hidden(),
                }
            });
            shown.collect()
        }
        ("extra", Value::Object(fields)) if path.starts_with("models.") => {
            let names = fields.keys().map(|name| (name.clone(), hidden()));
            Value::Object(names.collect())
        }
        _ => value.clone(),
    }
}

/// An address without what stands before `@` in it, and without its query.
fn address(url: &str) -> String {
    let (scheme, rest) = match url.split_once("://") {
        Some((scheme, rest)) => (format!("{scheme}://"), rest),
        None => (String::new(), url),
    };
    let end = rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len());
    let (host, behind) = rest.split_at_checked(end).unwrap_or((rest, ""));
    let (user, host) = match host.rsplit_once('@') {
        Some((_, host)) => (format!("{HIDDEN}@"), host),
        None => (String::new(), host),
    };
    let (path, query) = match behind.find(['?', '#']) {
        Some(end) => {
            let sign = behind.get(end..=end).unwrap_or_default();
            let path = behind.get(..end).unwrap_or_default();
            (path, format!("{sign}{HIDDEN}"))
        }
        None => (behind, String::new()),
    };
    format!("{scheme}{user}{host}{path}{query}")
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

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::without_secrets;

    #[test]
    fn what_may_be_a_secret_is_not_shown() {
        let check = |path: &str, value: Value, expected: Value| {
            assert_eq!(without_secrets(path, &value), expected, "{path} = {value}");
        };
        for (url, expected) in [
            ("https://a.example/v1", "https://a.example/v1"),
            (
                "https://a.example/v1?api_key=k",
                "https://a.example/v1?(not shown)",
            ),
            ("https://a.example?key=k@b", "https://a.example?(not shown)"),
            ("https://a.example/#k", "https://a.example/#(not shown)"),
            (
                "https://u:k@a.example/v1",
                "https://(not shown)@a.example/v1",
            ),
            (
                "https://k@u@a.example:8443?x=k",
                "https://(not shown)@a.example:8443?(not shown)",
            ),
            ("https://a.example/@b", "https://a.example/@b"),
            ("u:k@a.example?k", "(not shown)@a.example?(not shown)"),
        ] {
            for path in ["models.a.url", "mcp.servers.\"a.b\".url"] {
                check(path, url.into(), expected.into());
            }
        }
        let args = "mcp.servers.a.args";
        check(
            args,
            json!(["run", "--token", "k"]),
            json!(["run", "(not shown)", "(not shown)"]),
        );
        check(args, json!(["--token=k=l"]), json!(["--token=(not shown)"]));
        check(args, json!([]), json!([]));
        check(
            "models.a.extra",
            json!({"key": "k", "deep": {"key": "k"}, "number": 1}),
            json!({"key": "(not shown)", "deep": "(not shown)", "number": "(not shown)"}),
        );
        check("model", "ollama:a?b".into(), "ollama:a?b".into());
    }
}
