//! The settings of `ask` and `chat`: of users, projects, the environment and options, one over the other.
//!
//! A project's file comes from the author of the project, and applies only as far as it is [trusted](trust).

mod model;
mod project;
mod texts;
mod tool_setup;
mod trust;

use std::path::{Path, PathBuf};

use plaincall_agent::AgentLimits;
use plaincall_call::names::did_you_mean;
use plaincall_config::{Layers, Mcp, Node, Origin, Settings, dotted, read_settings, variables};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::options::{AgentOptions, FileOptions};
use crate::status::Failure;
use crate::terminal::problems;
use crate::tools_file;

pub(crate) use model::{Chosen, Ready};
pub(crate) use project::Project;
pub(crate) use tool_setup::ToolSetup;
pub(crate) use trust::{distrust, trust};

/// The first letters of all variables.
const PREFIX: &str = "PLAINCALL_";
/// The variable that names the user's file.
const USER_FILE: &str = "PLAINCALL_CONFIG";
/// Variables that set nothing here: the key of a model without a table, and those of other commands.
const OTHERS: [&str; 5] = [
    USER_FILE,
    model::KEY,
    "PLAINCALL_KEYS",
    "PLAINCALL_UPSTREAM_KEY",
    "PLAINCALL_SECRET",
];

#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    /// The same with the origin of each value.
    pub(crate) tree: Node,
    /// The user's file, whether it is there or not.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) project: Option<Project>,
    /// Where Plaincall keeps its state.
    pub(crate) state: Option<PathBuf>,
}

impl Configuration {
    /// Merges the layers. With `is_about_project`, errors in the project's file are shown and do not fail.
    ///
    /// # Errors
    /// A file has mistakes, which are shown; or a variable has a value that cannot be meant.
    pub(crate) fn load(
        files: &FileOptions,
        options: Node,
        is_about_project: bool,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let here = std::path::absolute(".").map_err(|error| {
            Failure::Broken(format!("cannot find the working directory: {error}"))
        })?;
        let home = environment.get("HOME").map(Path::new);
        let named = environment.get(USER_FILE).map(PathBuf::from);
        let named = files.config.clone().or(named);
        let is_named = named.is_some();
        let user_file = named.or_else(|| {
            let folder = directory(environment, "XDG_CONFIG_HOME", ".config");
            Some(folder?.join("config.toml"))
        });
        let state = directory(environment, "XDG_STATE_HOME", ".local/state");
        let mut layers = Layers {
            defaults: defaults(state.as_deref()),
            environment: from_variables(environment)?,
            options,
            ..Layers::default()
        };
        if let Some(path) = &user_file
            && (is_named || path.exists())
        {
            let (name, text) = tools_file::read(path)?;
            layers.user = read_settings(&name, &text, None).map_err(|error| {
                let count = problems::show(&name, &text, &error);
                Failure::Configuration(format!("{name} has {count}"))
            })?;
        }
        let project_file = (!files.no_project).then(|| project::find(&here)).flatten();
        let mut project = None;
        if let Some(path) = project_file.filter(|path| Some(path) != user_file.as_ref()) {
            let (found, layer) = Project::read(path, home, state.as_deref(), is_about_project)?;
            layers.project = layer;
            project = Some(found);
        }
        let tree = layers.merge();
        let wrong = |pointer: &str, message: &str| {
            Failure::Configuration(format!("`{}`: {message}", dotted(pointer)))
        };
        let mut settings: Settings = tree.read().map_err(|problems: Vec<_>| {
            let (pointer, message) = problems.into_iter().next().unwrap_or_default();
            wrong(&pointer, &message)
        })?;
        // Layers that are right each may still not go together.
        if let Some((place, message)) = settings.problems().first() {
            return Err(wrong(place.pointer(), message));
        }
        let mut configuration = Self {
            settings: Settings::default(),
            tree,
            user_file,
            project,
            state,
        };
        let folder = |pointer: &str| configuration.folder(pointer);
        settings.resolve(
            |pointer| folder(pointer).unwrap_or_else(|| here.clone()),
            home,
        );
        configuration.settings = settings;
        Ok(configuration)
    }

    /// The layers with the options of an agent.
    ///
    /// # Errors
    /// See [`load`](Self::load).
    pub(crate) fn of(options: &AgentOptions, environment: &Environment) -> Result<Self, Failure> {
        let mut configuration = Self::load(&options.files, options.layer(), false, environment)?;
        if options.no_tools {
            let settings = &mut configuration.settings;
            settings.tools.clear();
            settings.builtin.directory = None;
            settings.mcp = Mcp::default();
        }
        Ok(configuration)
    }

    /// What set a value.
    pub(crate) fn origin(&self, pointer: &str) -> &Origin {
        let node = self.tree.get(pointer);
        node.map_or(&Origin::Default, |node| &node.origin)
    }

    /// Whether a project's file set a value.
    pub(crate) fn is_of_project(&self, pointer: &str) -> bool {
        self.project.as_ref().is_some_and(|project| {
            matches!(self.origin(pointer), Origin::File { file, .. } if **file == *project.name)
        })
    }

    /// The folder of the file that set a value.
    fn folder(&self, pointer: &str) -> Option<PathBuf> {
        let Origin::File { .. } = self.origin(pointer) else {
            return None;
        };
        let project = self.project.as_ref();
        let project = project.filter(|_| self.is_of_project(pointer));
        let file = project.map(|project| &project.path);
        let file = file.or(self.user_file.as_ref())?;
        Some(std::path::absolute(file).ok()?.parent()?.to_owned())
    }

    /// Where sessions are kept.
    ///
    /// # Errors
    /// There is no place for them.
    pub(crate) fn session_directory(&self) -> Result<&Path, Failure> {
        let nowhere = "no directory for sessions; set `HOME`, or `sessions` in the configuration";
        let directory = self.settings.sessions.as_ref().map(|path| &*path.0);
        directory.ok_or_else(|| Failure::Configuration(nowhere.to_owned()))
    }

    /// The warning about a project's file of which something does not count.
    pub(crate) fn warning(&self) -> Option<String> {
        self.project.as_ref()?.warning()
    }

    /// The name of a file for messages, and its text: that of a trusted project's file is the very text that is trusted,
    /// even if the file has changed since.
    ///
    /// # Errors
    /// It cannot be read, or is no text.
    fn text(&self, path: &Path) -> Result<(String, String), Failure> {
        let project = self.project.as_ref();
        let Some(bytes) = project.and_then(|project| project.texts.get(path)) else {
            return tools_file::read(path);
        };
        let name = path.display().to_string();
        let text = tools_file::text(&name, bytes.clone())?;
        Ok((name, text))
    }
}

/// The defaults that do not depend on other files.
fn defaults(state: Option<&Path>) -> Node {
    let limits = AgentLimits::default();
    let sessions = state.map(|state| state.join("sessions"));
    let mut values = json!({ "limits": {
        "turns": limits.turns,
        "calls": limits.calls,
        "time": limits.time.as_secs(),
        "repairs": limits.repairs,
        "same_failure": limits.same_failure,
        "reminders": limits.reminders,
    }});
    if let Some(sessions) = sessions.as_deref().and_then(Path::to_str) {
        values["sessions"] = sessions.into();
    }
    Node::new(values, Origin::Default)
}

/// A directory of Plaincall's own below the one that the variable names, or below the home.
fn directory(environment: &Environment, variable: &str, otherwise: &str) -> Option<PathBuf> {
    // A path that is not absolute means nothing there.
    let named = environment.get(variable).map(Path::new);
    let base = match named.filter(|path| path.is_absolute()) {
        Some(path) => path.to_owned(),
        None => Path::new(environment.get("HOME")?).join(otherwise),
    };
    Some(base.join("plaincall"))
}

/// The layer of the environment: `PLAINCALL_MODEL`, `PLAINCALL_LIMITS_TURNS` and their like.
fn from_variables(environment: &Environment) -> Result<Node, Failure> {
    let name_of =
        |pointer: &String| format!("PLAINCALL{}", pointer.replace('/', "_")).to_uppercase();
    let pointers = variables();
    let names: Vec<String> = pointers.iter().map(name_of).collect();
    let mut layer = Node::default();
    for name in environment.names_with(PREFIX) {
        if OTHERS.contains(&name) {
            continue;
        }
        let Some(at) = names.iter().position(|known| known == name) else {
            let known = names.iter().map(String::as_str);
            let near = did_you_mean(name, known.chain([USER_FILE, model::KEY]));
            return Err(Failure::Configuration(format!(
                "unknown variable `{name}`; see `plaincall config --schema` for the keys{near}"
            )));
        };
        let Some(text) = environment.get(name) else {
            // Set to nothing is not set.
            continue;
        };
        let Some(text) = text.to_str() else {
            return Err(Failure::Configuration(format!("{name} is not valid UTF-8")));
        };
        let read = |value: Value| {
            let mut one = Node::default();
            let pointer = pointers.get(at).map_or("", String::as_str);
            one.set(pointer, Node::new(value, Origin::Variable(name.into())));
            match one.read::<Settings>() {
                Ok(_) => Ok(one),
                Err(problems) => Err(problems.into_iter().next().unwrap_or_default().1),
            }
        };
        // What is no text for the key may be a number.
        let one = match text.parse::<u64>() {
            Ok(number) => read(text.into()).or_else(|_| read(number.into())),
            Err(_) => read(text.into()),
        };
        let problem = |problem| Failure::Configuration(format!("{name}: {problem}"));
        layer.overlay(one.map_err(problem)?);
    }
    Ok(layer)
}
