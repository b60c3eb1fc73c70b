//! `plaincall config`: show the settings and their sources.

use std::path::PathBuf;

use clap::Args;
use plaincall_config::settings::schema;
use plaincall_config::{Node, Origin, child, dotted};
use serde::Serialize;
use serde_json::Value;

use crate::environment::Environment;
use crate::options::FileOptions;
use crate::output::Output;
use crate::sanitize::sanitize;
use crate::settings::{Configuration, distrust, trust};
use crate::status::{Failure, Outcome, Status};
use crate::terminal::palette::{DIM, PLAIN};

/// Show the configuration, and the source of each value.
///
/// The configuration has layers. In order of precedence: options, environment variables (`PLAINCALL_MODEL`,
/// `PLAINCALL_LIMITS_TURNS` and so on), the project configuration, your user configuration, and the defaults. The user
/// configuration is `plaincall/config.toml` in `XDG_CONFIG_HOME`, or in `~/.config`. The project configuration is the
/// first `plaincall.toml` in the working directory or one of its parents.
///
/// The project configuration comes from the author of the project. Until you trust it, only its `deny` and `ask` rules
/// apply. Trust covers the content of this file and of the files that it names: changing any of them revokes trust,
/// with a note. A project configuration can never name the source of a key. It is ignored if it belongs to another
/// user.
///
/// Possible secrets are not shown, not even by `--trust`: keys, values of `env`, `headers` and `extra`, arguments of
/// MCP servers after the first, and queries of URLs.
///
/// Exit status: 0 on success; 1 if something cannot be read or written; 2 for invalid configuration or wrong usage.
#[derive(Args, Debug)]
pub(crate) struct ConfigOptions {
    /// Print one JSON object: `files`, and `values`, each with `path`, `value`, `from` and `origin`.
    #[arg(long, short)]
    json: bool,

    /// Print the JSON Schema of the configuration file.
    #[arg(long, conflicts_with = "json")]
    schema: bool,

    /// Show the project configuration and the files that it names, ask for confirmation on the terminal, and trust
    /// them.
    ///
    /// Without a terminal, print a fingerprint of these files and trust nothing. Pass the fingerprint as the value of
    /// this option to trust them without confirmation.
    #[arg(
        long,
        value_name = "FINGERPRINT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["json", "schema"]
    )]
    trust: Option<String>,

    /// Stop trusting the project configuration.
    #[arg(long, conflicts_with_all = ["json", "schema", "trust"])]
    distrust: bool,

    #[command(flatten)]
    files: FileOptions,
}

pub(crate) fn config(options: &ConfigOptions, output: &mut Output) -> Outcome {
    if options.schema {
        output.text(format_args!("{:#}\n", schema()))?;
        output.flush()?;
        return Ok(Status::Success);
    }
    let environment = Environment::read();
    let configuration = Configuration::load(&options.files, Node::default(), true, &environment)?;
    if let Some(fingerprint) = &options.trust {
        return trust(&configuration, fingerprint, output);
    }
    if options.distrust {
        return distrust(&configuration);
    }
    let shown = Shown::of(&configuration);
    if options.json {
        output.json_line(&shown)?;
    } else {
        shown.print(output)?;
    }
    output.flush()?;
    let project = configuration.project.as_ref();
    match project.and_then(|project| Some((&project.name, project.flaw.as_ref()?))) {
        Some((name, flaw)) if flaw.is_invalid => Err(Failure::Configuration(format!(
            "{name} {}, so it is ignored",
            flaw.sentence
        ))),
        _ => Ok(Status::Success),
    }
}

/// The output of the command.
#[derive(Default, Serialize)]
struct Shown {
    files: Vec<ShownFile>,
    values: Vec<ShownValue>,
}

/// A file of the configuration.
#[derive(Serialize)]
struct ShownFile {
    from: &'static str,
    file: PathBuf,
    /// Whether the value applies.
    state: String,
}

/// A value, without secrets.
#[derive(Serialize)]
struct ShownValue {
    path: String,
    value: Value,
    /// The layer that set it.
    from: &'static str,
    /// The exact source.
    origin: String,
}

impl Shown {
    fn of(configuration: &Configuration) -> Self {
        let mut shown = Self::default();
        if let Some(file) = configuration.user_file.clone() {
            let state = if file.exists() { "read" } else { "not found" }.to_owned();
            let from = "user";
            shown.files.push(ShownFile { from, file, state });
        }
        if let Some(project) = &configuration.project {
            let ignored = project.ignored.join(", ");
            let state = match &project.flaw {
                Some(flaw) => format!("ignored: it {}", flaw.sentence),
                None if project.is_trusted => "trusted".to_owned(),
                None if ignored.is_empty() => "not trusted".to_owned(),
                None => format!(
                    "not trusted; ignored: {ignored}; to review and trust it, run `plaincall config --trust`"
                ),
            };
            let (from, file) = ("project", project.path.clone());
            shown.files.push(ShownFile { from, file, state });
        }
        // Serialized settings contain no secrets.
        if let Ok(settings) = serde_json::to_value(&configuration.settings) {
            shown.collect(configuration, "", &settings);
        }
        shown
    }

    /// Adds the values of a table that are set, in the order of its type.
    fn collect(&mut self, configuration: &Configuration, pointer: &str, value: &Value) {
        let Some(node) = configuration.tree.get(pointer) else {
            return;
        };
        match value {
            Value::Object(table)
                if !pointer.ends_with("/extra") && !pointer.starts_with("/rules/") =>
            {
                for (key, value) in table {
                    self.collect(configuration, &child(pointer, key), value);
                }
            }
            Value::Array(rules) if pointer == "/rules" => {
                for index in 0..rules.len() {
                    let pointer = format!("/rules/{index}");
                    let rule = configuration
                        .tree
                        .get(&pointer)
                        .and_then(|node| node.read().ok());
                    self.collect(configuration, &pointer, &rule.unwrap_or_default());
                }
            }
            value => {
                let from = match &node.origin {
                    Origin::Default => "default",
                    Origin::File { .. } if configuration.is_of_project(pointer) => "project",
                    Origin::File { .. } => "user",
                    Origin::Variable(_) => "environment",
                    Origin::Option(_) => "options",
                };
                let origin = match &node.origin {
                    Origin::File { line, .. } => format!("{from}, line {line}"),
                    Origin::Default => from.to_owned(),
                    origin => origin.to_string(),
                };
                let (path, value) = (dotted(pointer), value.clone());
                self.values.push(ShownValue {
                    path,
                    value,
                    from,
                    origin,
                });
            }
        }
    }

    fn print(&self, output: &mut Output) -> Result<(), Failure> {
        for ShownFile { from, file, state } in &self.files {
            let line = format!("# {from}: {} ({state})", file.display());
            output.text(format_args!("{}\n", sanitize(&line)))?;
        }
        output.text(format_args!("\n"))?;
        let lines = self.values.iter().map(|shown| {
            let value = toml::Value::try_from(&shown.value);
            let value = value.map_or_else(|_| shown.value.to_string(), |value| value.to_string());
            (
                sanitize(&format!("{} = {value}", shown.path)),
                &shown.origin,
            )
        });
        let lines: Vec<(String, &String)> = lines.collect();
        let width = lines.iter().map(|(line, _)| line.chars().count());
        let width = width.filter(|width| *width <= 60).max().unwrap_or(0);
        let dim = if output.has_color { DIM } else { PLAIN };
        for (line, origin) in lines {
            output.text(format_args!("{line:width$}  {dim}# {origin}{dim:#}\n"))?;
        }
        Ok(())
    }
}
