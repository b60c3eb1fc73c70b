//! The settings of `ask` and `chat`, merged from the configuration of user and project, the environment and the
//! options.
//!
//! The project configuration comes from the author of the project. Until it is [trusted](trust), most of it is ignored.

mod model;
mod project;
mod texts;
mod tool_setup;
mod trust;

use std::path::{Path, PathBuf};

use plaincall_agent::AgentLimits;
use plaincall_call::names::did_you_mean;
use plaincall_config::settings::{Layers, Mcp, Settings, read_settings, variables};
use plaincall_config::{Node, Origin, dotted};
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::options::{AgentOptions, FileOptions};
use crate::status::{Failure, print_note};
use crate::terminal::problems;
use crate::tools_file;

pub(crate) use model::{Chosen, Ready, http};
pub(crate) use project::Project;
pub(crate) use tool_setup::ToolSetup;
pub(crate) use trust::{distrust, trust};

/// The prefix of all environment variables.
const PREFIX: &str = "PLAINCALL_";
/// The environment variable with the path of the user configuration.
const USER_FILE: &str = "PLAINCALL_CONFIG";
/// Variables that are not keys of the configuration.
const OTHER_VARIABLES: [&str; 5] = [
    USER_FILE,
    model::KEY,
    "PLAINCALL_KEYS",
    "PLAINCALL_UPSTREAM_KEY",
    "PLAINCALL_SECRET",
];

/// The merged configuration.
#[derive(Debug)]
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    /// The settings with the origin of each value.
    pub(crate) tree: Node,
    /// The path of the user configuration. The file may not exist.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) project: Option<Project>,
    /// The state directory.
    pub(crate) state: Option<PathBuf>,
}

impl Configuration {
    /// Loads and merges the layers. Prints the errors of invalid files. With `is_about_project`, an invalid project
    /// configuration does not fail.
    pub(crate) fn load(
        files: &FileOptions,
        options: Node,
        agent: Option<&str>,
        is_about_project: bool,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let cwd = std::path::absolute(".").map_err(|error| {
            Failure::Runtime(format!("cannot find the working directory: {error}"))
        })?;
        let home = environment.get("HOME").map(Path::new);
        let explicit = environment.get(USER_FILE).map(PathBuf::from);
        let explicit = files.config.clone().or(explicit);
        let is_explicit = explicit.is_some();
        let user_file = explicit.or_else(|| {
            let parent = directory(environment, "XDG_CONFIG_HOME", ".config");
            Some(parent?.join("config.toml"))
        });
        let state = directory(environment, "XDG_STATE_HOME", ".local/state");
        let mut layers = Layers {
            defaults: defaults(state.as_deref()),
            environment: from_variables(environment)?,
            options,
            agent: agent.map(str::to_owned),
            ..Layers::default()
        };
        if let Some(path) = &user_file
            && (is_explicit || path.exists())
        {
            let (name, text) = tools_file::read(path)?;
            layers.user = read_settings(&name, &text, None).map_err(|error| {
                let count = problems::show(&name, &text, &error);
                Failure::Configuration(format!("{name} has {count}"))
            })?;
        }
        let project_file = (!files.no_project).then(|| project::find(&cwd)).flatten();
        let mut project = None;
        if let Some(path) = project_file.filter(|path| Some(path) != user_file.as_ref()) {
            let (found, layer) = Project::read(path, home, state.as_deref(), is_about_project)?;
            layers.project = layer;
            project = Some(found);
        }
        let tree = layers.merge();
        let invalid = |pointer: &str, message: &str| {
            Failure::Configuration(format!("`{}`: {message}", dotted(pointer)))
        };
        let mut settings: Settings = tree.read().map_err(|problems: Vec<_>| {
            let (pointer, message) = problems.into_iter().next().unwrap_or_default();
            invalid(&pointer, &message)
        })?;
        if let Some(name) = agent.filter(|name| !settings.agents.contains_key(*name)) {
            if let Some(warning) = project.as_ref().and_then(Project::warning) {
                print_note(&warning);
            }
            return Err(unknown_agent(name, &settings));
        }
        // Layers that are valid on their own may still conflict.
        if let Some((location, message)) = settings.problems().first() {
            return Err(invalid(location.pointer(), message));
        }
        let mut configuration = Self {
            settings: Settings::default(),
            tree,
            user_file,
            project,
            state,
        };
        let directory_of = |pointer: &str| configuration.directory_of(pointer);
        settings.resolve(
            |pointer| directory_of(pointer).unwrap_or_else(|| cwd.clone()),
            home,
        );
        configuration.settings = settings;
        Ok(configuration)
    }

    /// Loads the configuration for the options of an agent.
    pub(crate) fn of(options: &AgentOptions, environment: &Environment) -> Result<Self, Failure> {
        let mut configuration = Self::load(
            &options.files,
            options.layer(),
            options.agent.as_deref(),
            false,
            environment,
        )?;
        if options.no_tools {
            let settings = &mut configuration.settings;
            settings.tools.clear();
            settings.builtin.directory = None;
            settings.mcp = Mcp::default();
        }
        Ok(configuration)
    }

    /// Returns the origin of a value.
    pub(crate) fn origin(&self, pointer: &str) -> &Origin {
        let node = self.tree.get(pointer);
        node.map_or(&Origin::Default, |node| &node.origin)
    }

    /// Returns whether the project configuration set a value.
    pub(crate) fn is_of_project(&self, pointer: &str) -> bool {
        self.project.as_ref().is_some_and(|project| {
            matches!(self.origin(pointer), Origin::File { file, .. } if **file == *project.name)
        })
    }

    /// Returns the directory of the file that set a value.
    fn directory_of(&self, pointer: &str) -> Option<PathBuf> {
        let Origin::File { .. } = self.origin(pointer) else {
            return None;
        };
        let project = self.project.as_ref();
        let project = project.filter(|_| self.is_of_project(pointer));
        let file = project.map(|project| &project.path);
        let file = file.or(self.user_file.as_ref())?;
        Some(std::path::absolute(file).ok()?.parent()?.to_owned())
    }

    /// Returns the directory of sessions.
    pub(crate) fn session_directory(&self) -> Result<&Path, Failure> {
        let missing = "no directory for sessions; set `HOME`, or `sessions` in the configuration";
        let directory = self.settings.sessions.as_ref().map(|path| &*path.0);
        directory.ok_or_else(|| Failure::Configuration(missing.to_owned()))
    }

    /// Returns the warning about ignored parts of the project configuration.
    pub(crate) fn warning(&self) -> Option<String> {
        self.project.as_ref()?.warning()
    }

    /// Reads a file. Returns its name in messages and its text. For files of a trusted project, the text is the one
    /// that was checked for trust, even if the file has changed since.
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

fn unknown_agent(name: &str, settings: &Settings) -> Failure {
    let names = || settings.agents.keys().map(String::as_str);
    let known: Vec<String> = names().map(|name| format!("`{name}`")).collect();
    let known = if known.is_empty() {
        format!("add a table `[agents.{name}]` to the configuration")
    } else {
        format!("the configuration has {}", known.join(", "))
    };
    let near = did_you_mean(name, names());
    Failure::Configuration(format!("unknown agent `{name}`; {known}{near}"))
}

/// Returns the default values.
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

/// Returns the directory of Plaincall in the directory of a variable, or in `otherwise` below the home directory.
fn directory(environment: &Environment, variable: &str, otherwise: &str) -> Option<PathBuf> {
    // The XDG specification ignores relative paths.
    let value = environment.get(variable).map(Path::new);
    let base = match value.filter(|path| path.is_absolute()) {
        Some(path) => path.to_owned(),
        None => Path::new(environment.get("HOME")?).join(otherwise),
    };
    Some(base.join("plaincall"))
}

/// Returns the layer of the environment variables, such as `PLAINCALL_MODEL` and `PLAINCALL_LIMITS_TURNS`.
fn from_variables(environment: &Environment) -> Result<Node, Failure> {
    let name_of =
        |pointer: &String| format!("PLAINCALL{}", pointer.replace('/', "_")).to_uppercase();
    let pointers = variables();
    let names: Vec<String> = pointers.iter().map(name_of).collect();
    let mut layer = Node::default();
    for name in environment.names_with(PREFIX) {
        if OTHER_VARIABLES.contains(&name) {
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
            // An empty variable counts as unset.
            continue;
        };
        let Some(text) = text.to_str() else {
            return Err(Failure::Configuration(format!("{name} is not valid UTF-8")));
        };
        let read = |value: Value| {
            let mut single = Node::default();
            let pointer = pointers.get(at).map_or("", String::as_str);
            single.set(pointer, Node::new(value, Origin::Variable(name.into())));
            match single.read::<Settings>() {
                Ok(_) => Ok(single),
                Err(problems) => Err(problems.into_iter().next().unwrap_or_default().1),
            }
        };
        // If the key does not accept text, try a number.
        let single = match text.parse::<u64>() {
            Ok(number) => read(text.into()).or_else(|_| read(number.into())),
            Err(_) => read(text.into()),
        };
        let problem = |problem| Failure::Configuration(format!("{name}: {problem}"));
        layer.overlay(single.map_err(problem)?);
    }
    Ok(layer)
}
