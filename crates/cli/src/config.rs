//! The configuration of `ask` and `chat`: what users, projects, the environment and options say, one on top of the other.
//!
//! A project's file comes with the project, from whoever wrote that: it counts as `trust` says.

pub(crate) mod check;
pub(crate) mod contents;
mod layer;
mod mistakes;
pub(crate) mod model;
mod options;
pub(crate) mod parts;
mod print;
mod project;
mod redact;
mod reference;
mod schema;
mod servers;
mod settle;
mod texts;
mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;
use std::path::{Path, PathBuf};

use plaincall::DEFAULT_CONCURRENT;
use plaincall_agent::AgentLimits;
use plaincall_call::did_you_mean;
use serde_json::{Map, Value};

use crate::config::contents::Contents;
use crate::config::layer::{Author, Paths, from_text};
pub(crate) use crate::config::layer::{Layer, Place};
pub(crate) use crate::config::options::{AgentOptions, GIVEN, KindOption, SyntaxOption};
pub(crate) use crate::config::print::{ConfigOptions, FileOptions, config};
pub(crate) use crate::config::project::Project;
pub use crate::config::reference::reference;
pub use crate::config::schema::schema;
use crate::config::schema::{Part, Shape};
use crate::environment::Environment;
use crate::status::Failure;
use crate::tools_file;

/// What all variables begin with.
const PREFIX: &str = "PLAINCALL_";
/// The variable that names the user's file.
const USER_FILE: &str = "PLAINCALL_CONFIG";
/// What a key of a model is called that has no table.
pub(crate) const MODEL_KEY: &str = "PLAINCALL_KEY";
/// Variables of other commands.
const OTHERS: [&str; 3] = [
    "PLAINCALL_KEYS",
    "PLAINCALL_UPSTREAM_KEY",
    "PLAINCALL_SECRET",
];

/// Where values come from, from the furthest layer to the nearest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum From {
    Default,
    User,
    Project,
    Environment,
    Options,
}

/// Where a value comes from.
#[derive(Clone, Debug)]
pub(crate) struct Origin {
    pub(crate) from: From,
    pub(crate) place: Option<Place>,
}

/// All layers together.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) contents: Contents,
    /// The same in the form of the schema.
    values: Map<String, Value>,
    /// Where each key comes from; what is not in it is as it is by itself.
    origins: BTreeMap<String, Origin>,
    /// The user's file, whether it is there or not.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) project: Option<Project>,
    /// Where Plaincall keeps what it has to remember.
    pub(crate) state: Option<PathBuf>,
}

/// Where the configuration is looked for.
#[derive(Clone, Debug, Default)]
pub(crate) struct Sources {
    /// The file in the place of the user's own.
    pub(crate) user_file: Option<PathBuf>,
    /// No project's file is looked for.
    pub(crate) no_project: bool,
    /// The project's file is what is asked about: mistakes in it are shown, and are no failure.
    pub(crate) tells_of_project: bool,
    /// What options of the command say.
    pub(crate) options: Layer,
}

impl Configuration {
    /// Puts the layers together.
    ///
    /// # Errors
    /// A file has mistakes, which are shown; or a variable says what cannot be meant.
    pub(crate) fn load(sources: Sources, environment: &Environment) -> Result<Self, Failure> {
        let schema = schema();
        let here = std::path::absolute(".").map_err(|error| {
            Failure::Broken(format!("the working directory is not known: {error}"))
        })?;
        let home = environment.get("HOME").map(PathBuf::from);
        let from_environment = variables(&schema, environment, &here, home.as_deref())?;
        let named = sources
            .user_file
            .or_else(|| environment.get(USER_FILE).map(PathBuf::from));
        let is_named = named.is_some();
        let user_file = named.or_else(|| {
            let folder = directory(environment, "XDG_CONFIG_HOME", ".config");
            Some(folder?.join("config.toml"))
        });
        let state = directory(environment, "XDG_STATE_HOME", ".local/state");
        let mut merged = Merged::default();
        if let Some(path) = user_file
            .as_deref()
            .filter(|path| is_named || path.exists())
        {
            merged.add(From::User, read(path, &schema, home.as_deref())?);
        }
        let project_file = (!sources.no_project).then(|| project::find(&here));
        let mut project = None;
        if let Some(path) = project_file.flatten()
            && Some(&path) != user_file.as_ref()
        {
            let (home, state) = (home.as_deref(), state.as_deref());
            let (found, layer) =
                Project::read(path, &schema, home, state, sources.tells_of_project)?;
            merged.add(From::Project, layer);
            project = Some(found);
        }
        merged.add(From::Environment, from_environment);
        merged.add(From::Options, sources.options);
        let Merged {
            values, origins, ..
        } = merged.finish();
        let contents = serde_json::from_value(Value::Object(values.clone())).map_err(|error| {
            Failure::Broken(format!("the configuration cannot be read: {error}"))
        })?;
        let configuration = Self {
            contents,
            values,
            origins,
            user_file,
            project,
            state,
        };
        configuration.refuse_problems()?;
        Ok(configuration)
    }

    /// Layers that are right each may still not go together.
    fn refuse_problems(&self) -> Result<(), Failure> {
        match check::problems(&self.contents).into_iter().next() {
            Some((path, message)) => Err(Failure::Configuration(format!("`{path}`: {message}"))),
            None => Ok(()),
        }
    }

    /// Where the value of a key comes from.
    pub(crate) fn origin(&self, path: &str) -> Origin {
        let known = self.origins.get(path).cloned();
        known.unwrap_or(Origin {
            from: From::Default,
            place: None,
        })
    }

    /// What holds by itself.
    fn defaults(&self) -> Vec<(&'static str, Value)> {
        let limits = AgentLimits::default();
        let mut defaults = vec![
            ("limits.turns", limits.turns.into()),
            ("limits.calls", limits.calls.into()),
            ("limits.time", format!("{}s", limits.time.as_secs()).into()),
            ("limits.repairs", limits.repairs.into()),
            ("limits.reminders", limits.reminders.into()),
            ("limits.concurrent", DEFAULT_CONCURRENT.into()),
        ];
        if let Some(sessions) = self.sessions() {
            defaults.push(("sessions", sessions.to_string_lossy().into()));
        }
        defaults
    }

    /// Where sessions are kept, if there is a place.
    pub(crate) fn sessions(&self) -> Option<PathBuf> {
        let named = self.contents.sessions.as_ref().map(|path| path.0.clone());
        named.or_else(|| Some(self.state.as_ref()?.join("sessions")))
    }

    /// What is to be said about a project's file of which something does not count.
    pub(crate) fn doubt(&self) -> Option<String> {
        self.project.as_ref()?.doubt()
    }

    /// What messages call a file that the configuration names, and its text: that of a trusted project's file is the very
    /// text that is trusted, whatever stands there now.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    pub(crate) fn text(&self, path: &Path) -> Result<(String, String), Failure> {
        let trusted = self.project.as_ref().map(|project| &project.texts);
        match trusted.and_then(|texts| texts.get(path)) {
            Some(bytes) => {
                let name = path.display().to_string();
                let text = tools_file::text(&name, bytes.to_vec())?;
                Ok((name, text))
            }
            None => tools_file::read(path),
        }
    }
}

/// A directory of Plaincall's own below the one that the variable names, or below the home.
fn directory(environment: &Environment, variable: &str, otherwise: &str) -> Option<PathBuf> {
    // A path that is not whole means nothing there.
    let named = environment.get(variable).map(Path::new);
    let base = match named.filter(|path| path.is_absolute()) {
        Some(path) => path.to_owned(),
        None => Path::new(environment.get("HOME")?).join(otherwise),
    };
    Some(base.join("plaincall"))
}

/// Reads the user's own file, and shows its mistakes.
fn read(path: &Path, schema: &Value, home: Option<&Path>) -> Result<Layer, Failure> {
    let (name, text) = tools_file::read(path)?;
    mistakes::layer(&text, path, schema, Author::User, home).map_err(|mistakes| {
        mistakes::show(&name, &text, &mistakes);
        let count = mistakes::count(&mistakes);
        Failure::Configuration(format!("{name} has {count}, so nothing is done"))
    })
}

/// What the environment says: `PLAINCALL_MODEL`, `PLAINCALL_LIMITS_TURNS` and their like.
fn variables(
    schema: &Value,
    environment: &Environment,
    here: &Path,
    home: Option<&Path>,
) -> Result<Layer, Failure> {
    let keys = variable_keys(schema);
    let mut layer = Layer::default();
    for name in environment.names_with(PREFIX) {
        let is_other = OTHERS.contains(&name) || [USER_FILE, MODEL_KEY].contains(&name);
        if is_other {
            continue;
        }
        let Some((_, path, part)) = keys.iter().find(|(known, ..)| known == name) else {
            let known = keys.iter().map(|(known, ..)| known.as_str());
            let near = did_you_mean(name, known.chain([USER_FILE, MODEL_KEY]));
            return Err(Failure::Configuration(format!(
                "there is no variable `{name}`; `plaincall config --schema` has the keys{near}"
            )));
        };
        let Some(text) = environment.get(name) else {
            // Set to nothing is not set.
            continue;
        };
        let text = text
            .to_str()
            .ok_or_else(|| Failure::Configuration(format!("{name} is no text")))?;
        let paths = Paths { folder: here, home };
        let value = from_text(*part, text, paths).map_err(|wanted| {
            Failure::Configuration(format!("{name} is `{text}`; it must be {wanted}"))
        })?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        layer.set(&path, value, Place::Variable(name.to_owned()));
    }
    Ok(layer)
}

/// The keys that have a variable: single values, at the top and in its tables.
fn variable_keys(schema: &Value) -> Vec<(String, Vec<String>, Part<'_>)> {
    let mut keys = Vec::new();
    if let Shape::Table(top) = Part(schema).shape() {
        for (name, part) in top {
            match Part(part).shape() {
                Shape::Table(inner) => {
                    for (key, part) in inner {
                        if is_single(Part(part)) {
                            let variable = format!("{PREFIX}{name}_{key}").to_uppercase();
                            keys.push((variable, vec![name.clone(), key.clone()], Part(part)));
                        }
                    }
                }
                _ if is_single(Part(part)) => {
                    let variable = format!("{PREFIX}{name}").to_uppercase();
                    keys.push((variable, vec![name.clone()], Part(part)));
                }
                _ => {}
            }
        }
    }
    keys
}

fn is_single(part: Part<'_>) -> bool {
    matches!(
        part.shape(),
        Shape::Text | Shape::Words(_) | Shape::Path | Shape::Time | Shape::Count(_)
    )
}

/// Layers that are being put together.
#[derive(Debug, Default)]
struct Merged {
    values: Map<String, Value>,
    origins: BTreeMap<String, Origin>,
    rules: Vec<(From, Value, Option<Place>)>,
}

impl Merged {
    /// Puts a layer on top. What it says takes the place of what was said, but for rules: they are kept together.
    fn add(&mut self, from: From, layer: Layer) {
        let Layer { values, places, .. } = layer;
        for (key, value) in values {
            match (key.as_str(), value) {
                ("rules", Value::Array(rules)) => {
                    for (index, rule) in rules.into_iter().enumerate() {
                        let place = places.get(&format!("rules[{index}]")).cloned();
                        self.rules.push((from, rule, place));
                    }
                }
                ("models", Value::Object(models)) => {
                    for (name, model) in models {
                        self.put(&["models", &name], model, from, &places);
                    }
                }
                ("mcp", Value::Object(mcp)) => {
                    for (key, value) in mcp {
                        if let ("servers", Value::Object(servers)) = (key.as_str(), &value) {
                            for (name, server) in servers {
                                let keys = ["mcp", "servers", name];
                                self.put(&keys, server.clone(), from, &places);
                            }
                        } else {
                            self.put(&["mcp", &key], value, from, &places);
                        }
                    }
                }
                ("builtin" | "limits", Value::Object(table)) => {
                    for (inner, value) in table {
                        self.put(&[&key, &inner], value, from, &places);
                    }
                }
                (_, value) => self.put(&[&key], value, from, &places),
            }
        }
    }

    /// Puts one value in the place of what was there.
    fn put(&mut self, keys: &[&str], value: Value, from: From, places: &BTreeMap<String, Place>) {
        let path = keys
            .iter()
            .fold(String::new(), |path, key| layer::below(&path, key));
        // They say the same in two ways.
        for (one, other) in [("system", "system_file"), ("system_file", "system")] {
            if path == one {
                self.values.remove(other);
                self.origins.remove(other);
            }
        }
        let old: Vec<String> = inside(&self.origins, &path)
            .map(|(known, _)| known.clone())
            .collect();
        for known in old {
            self.origins.remove(&known);
        }
        for (known, place) in inside(places, &path) {
            let origin = Origin {
                from,
                place: Some(place.clone()),
            };
            self.origins.insert(known.clone(), origin);
        }
        let Some((last, tables)) = keys.split_last() else {
            return;
        };
        let mut values = &mut self.values;
        for table in tables {
            let inner = values
                .entry((*table).to_owned())
                .or_insert_with(|| Value::Object(Map::new()));
            let Value::Object(inner) = inner else {
                return;
            };
            values = inner;
        }
        values.insert((*last).to_owned(), value);
    }

    /// Puts the rules in the order in which they are asked.
    fn finish(mut self) -> Self {
        let denies = |rule: &Value| rule.get("verdict").is_some_and(|verdict| verdict == "deny");
        let mut rules = std::mem::take(&mut self.rules);
        rules.sort_by_key(|(from, rule, _)| match from {
            From::Project if denies(rule) => 0,
            From::Project => 2,
            // The sort keeps their order; the nearest layer comes first.
            _ => 1,
        });
        let mut values = Vec::new();
        for (index, (from, rule, place)) in rules.into_iter().enumerate() {
            let origin = Origin { from, place };
            self.origins.insert(format!("rules[{index}]"), origin);
            values.push(rule);
        }
        if !values.is_empty() {
            self.values.insert("rules".to_owned(), values.into());
        }
        self
    }
}

/// The entries of a key and of all that stands in it.
fn inside<'m, V>(
    map: &'m BTreeMap<String, V>,
    path: &'m str,
) -> impl Iterator<Item = (&'m String, &'m V)> {
    let from = (Bound::Included(path), Bound::Unbounded);
    map.range::<str, _>(from)
        .map_while(move |(known, value)| Some((known.strip_prefix(path)?, known, value)))
        .filter(|(rest, ..)| rest.is_empty() || rest.starts_with(['.', '[']))
        .map(|(_, known, value)| (known, value))
}

impl fmt::Display for From {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Default => "default",
            Self::User => "user",
            Self::Project => "project",
            Self::Environment => "environment",
            Self::Options => "options",
        })
    }
}
