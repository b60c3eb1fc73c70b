//! The settings of all commands, merged from the configuration of user and project, the environment and the
//! options.
//!
//! The project configuration comes from the author of the project. Until it is [trusted](trust), most of it is ignored.

mod model;
mod project;
mod texts;
mod tool_setup;
mod trust;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plaincall::process::CALL_VARIABLES;
use plaincall_agent::AgentLimits;
use plaincall_config::settings::{Layers, Mcp, NamedAgent, Settings, read_settings, variables};
use plaincall_config::{Document, Location, Node, Origin, dotted};
use plaincall_names::did_you_mean;
use serde_json::{Value, json};

use crate::environment::Environment;
use crate::model_servers::ollama_host;
use crate::options::{AgentOptions, FileOptions};
use crate::platform::{CONFIGURATION, HOME, STATE};
use crate::status::{Failure, print_note};
use crate::terminal::problems;
use crate::tools_file;

pub(crate) use model::{Chosen, Ready, http};
pub(crate) use project::Project;
pub(crate) use tool_setup::{ToolSetup, close_servers, report_notes};
pub(crate) use trust::{distrust, trust};

/// The prefix of all environment variables.
const PREFIX: &str = "PLAINCALL_";
/// The environment variable with the path of the user configuration.
const USER_FILE: &str = "PLAINCALL_CONFIG";
/// Variables that are not keys of the configuration, besides those that a tool gets.
const OTHER_VARIABLES: [&str; 6] = [
    USER_FILE,
    model::KEY,
    "PLAINCALL_INSPECTOR_PAGE",
    "PLAINCALL_KEYS",
    "PLAINCALL_UPSTREAM_KEY",
    "PLAINCALL_SECRET",
];

/// The merged configuration.
#[derive(Clone, Debug)]
pub(crate) struct Configuration {
    pub(crate) settings: Settings,
    /// The settings with the origin of each value.
    pub(crate) tree: Node,
    /// The path of the user configuration. The file may not exist.
    pub(crate) user_file: Option<PathBuf>,
    pub(crate) project: Option<Arc<Project>>,
    /// The state directory.
    pub(crate) state: Option<PathBuf>,
    /// The base URL of the Ollama server, if `OLLAMA_HOST` is set.
    ollama: Option<String>,
    layers: Layers,
    /// The name and the text of the user configuration, if it exists.
    user_text: Option<(String, String)>,
    home: Option<PathBuf>,
    working_directory: PathBuf,
    /// Whether the options disable all tools.
    has_no_tools: bool,
}

impl Configuration {
    /// Loads and merges the layers. Prints the errors of invalid files. With `is_about_project`, an invalid project
    /// configuration does not fail.
    pub(crate) fn load(
        files: &FileOptions,
        options: Node,
        is_about_project: bool,
        environment: &Environment,
    ) -> Result<Self, Failure> {
        let working_directory = std::path::absolute(".").map_err(|error| {
            Failure::Runtime(format!("cannot find the working directory: {error}"))
        })?;
        let home = environment.home().map(PathBuf::from);
        let explicit = environment.get(USER_FILE).map(PathBuf::from);
        let explicit = files.config.clone().or(explicit);
        let is_explicit = explicit.is_some();
        let user_file = explicit.or_else(|| {
            let parent = environment.directory(CONFIGURATION);
            Some(parent?.join("config.toml"))
        });
        let state = environment.directory(STATE);
        let mut layers = Layers::default();
        layers.defaults = defaults(state.as_deref());
        layers.environment = from_variables(environment)?;
        layers.options = options;
        let mut user_text = None;
        if let Some(path) = &user_file
            && (is_explicit || path.exists())
        {
            let (name, text) = tools_file::read_small(path)?;
            layers.user = read_settings(&name, &text, None).map_err(|error| {
                let count = problems::show(&name, &text, &error);
                Failure::Configuration(format!("{name} has {count}"))
            })?;
            user_text = Some((name, text));
        }
        let project_file = (!files.no_project).then(|| project::find(&working_directory));
        let project_file = project_file.flatten();
        let mut project = None;
        if let Some(path) = project_file.filter(|path| Some(path) != user_file.as_ref()) {
            let home = home.as_deref();
            let (found, layer) = Project::read(path, home, state.as_deref(), is_about_project)?;
            layers.project = layer;
            project = Some(Arc::new(found));
        }
        let mut configuration = Self {
            settings: Settings::default(),
            tree: Node::default(),
            user_file,
            project,
            state,
            ollama: ollama_host(environment).map(|address| format!("{address}/v1")),
            layers,
            user_text,
            home,
            working_directory,
            has_no_tools: false,
        };
        configuration.merge()?;
        configuration.check_agents(is_about_project)?;
        Ok(configuration)
    }

    /// Loads the configuration for the options of an agent.
    pub(crate) fn of(options: &AgentOptions, environment: &Environment) -> Result<Self, Failure> {
        let mut configuration = Self::load(&options.files, options.layer(), false, environment)?;
        configuration.has_no_tools = options.no_tools;
        configuration.layers.agent = match &options.agent {
            Some(name) => Some(configuration.known_agent(name)?.to_owned()),
            None => None,
        };
        configuration.merge()?;
        Ok(configuration)
    }

    /// Returns the name of the agent whose values apply, if any.
    pub(crate) fn agent(&self) -> Option<&str> {
        self.layers.agent.as_deref()
    }

    /// Returns the table of the agent whose values apply, if any.
    fn agent_table(&self) -> Option<&NamedAgent> {
        self.settings.agents.get(self.agent()?)
    }

    /// Returns the names of the agents that the agent has as tools.
    pub(crate) fn subagents(&self) -> &[String] {
        self.agent_table().map_or(&[], |agent| &agent.agents)
    }

    /// Returns the model that the table of the agent names, if any.
    pub(crate) fn own_model(&self) -> Option<&str> {
        self.agent_table()?.model.as_deref()
    }

    /// Applies the values of the agent of a session.
    pub(crate) fn use_agent_of_session(&mut self, name: &str) -> Result<(), Failure> {
        let known = self.known_agent(name);
        let known = known.map_err(|failure| {
            let message = failure.message();
            Failure::Configuration(format!("the session was started with an {message}"))
        })?;
        self.layers.agent = Some(known.to_owned());
        self.merge()
    }

    /// Returns the configuration of an agent that is a tool of another, without the options.
    pub(crate) fn of_subagent(&self, name: &str) -> Result<Self, Failure> {
        let mut configuration = self.clone();
        configuration.layers.options = Node::default();
        configuration.layers.agent = Some(name.to_owned());
        configuration.merge()?;
        Ok(configuration)
    }

    /// Merges the layers.
    fn merge(&mut self) -> Result<(), Failure> {
        self.tree = self.layers.clone().merge();
        let invalid = |pointer: &str, message: &str| {
            Failure::Configuration(format!("`{}`: {message}", dotted(pointer)))
        };
        let mut settings: Settings = self.tree.read().map_err(|problems: Vec<_>| {
            let (pointer, message) = problems.into_iter().next().unwrap_or_default();
            invalid(&pointer, &message)
        })?;
        // Layers that are valid on their own may still conflict.
        if let Some((location, message)) = settings.problems().first() {
            return Err(invalid(location.pointer(), message));
        }
        let directory_of = |pointer: &str| self.directory_of(pointer);
        settings.resolve(
            |pointer| directory_of(pointer).unwrap_or_else(|| self.working_directory.clone()),
            self.home.as_deref(),
        );
        if self.has_no_tools {
            settings.tools.clear();
            settings.builtin.directory = None;
            settings.mcp = Mcp::default();
            for agent in settings.agents.values_mut() {
                agent.agents.clear();
            }
        }
        self.settings = settings;
        Ok(())
    }

    /// Checks the agents that agents have as tools. Prints the problems.
    fn check_agents(&self, is_about_project: bool) -> Result<(), Failure> {
        self.report(&self.settings.agent_problems(), is_about_project)
    }

    /// Prints problems, each at its place in its file. With `is_about_project`, those of the project's file do not fail.
    pub(crate) fn report(
        &self,
        problems: &[(Location, String)],
        is_about_project: bool,
    ) -> Result<(), Failure> {
        let project = self.project.as_ref();
        let project = project.map(|project| (&project.name, &project.text, is_about_project));
        let user = self.user_text.as_ref();
        let files = user.map(|(name, text)| (name, text, false)).into_iter();
        for (name, text, is_ignored) in files.chain(project) {
            let mut document = Document::toml(name.as_str(), text.as_str());
            for (location, message) in problems {
                let origin = self.origin(location.pointer());
                if matches!(origin, Origin::File { file, .. } if **file == **name) {
                    document.problem(location, message.as_str());
                }
            }
            if let Err(error) = document.finish(()) {
                let count = problems::show(name, text, &error);
                if !is_ignored {
                    return Err(Failure::Configuration(format!("{name} has {count}")));
                }
            }
        }
        Ok(())
    }

    /// Returns the name of an agent that exists.
    fn known_agent<'n>(&self, name: &'n str) -> Result<&'n str, Failure> {
        let agents = &self.settings.agents;
        if agents.contains_key(name) {
            return Ok(name);
        }
        let near = did_you_mean(name, agents.keys().map(String::as_str));
        let project = self.project.as_ref();
        let untrusted = project.filter(|it| it.untrusted_agents.iter().any(|it| it == name));
        let advice = if let Some(project) = untrusted {
            let project = &project.name;
            format!(
                "; it is defined in {project}, which is not trusted; to review and trust it, run `plaincall config --trust`"
            )
        } else if near.is_empty() && agents.is_empty() {
            format!("; add a table `[agents.{name}]` to the configuration")
        } else if near.is_empty() {
            let known: Vec<String> = agents.keys().map(|name| format!("`{name}`")).collect();
            format!("; the configuration has {}", known.join(", "))
        } else {
            near
        };
        Err(Failure::Configuration(format!(
            "unknown agent `{name}`{advice}"
        )))
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

    pub(crate) fn session_directory(&self) -> Result<&Path, Failure> {
        let missing =
            format!("no directory for sessions; set `{HOME}`, or `sessions` in the configuration");
        let directory = self.settings.sessions.as_ref().map(|path| &*path.0);
        directory.ok_or(Failure::Configuration(missing))
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
            return tools_file::read_tools(path);
        };
        let name = path.display().to_string();
        let text = tools_file::text(&name, bytes.clone())?;
        Ok((name, text))
    }
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
        "same_result": limits.same_result,
        "reminders": limits.reminders,
    }});
    if let Some(sessions) = sessions.as_deref().and_then(Path::to_str) {
        values["sessions"] = sessions.into();
    }
    Node::new(values, Origin::Default)
}

/// Returns the layer of the environment variables, such as `PLAINCALL_MODEL` and `PLAINCALL_LIMITS_TURNS`.
fn from_variables(environment: &Environment) -> Result<Node, Failure> {
    let name_of =
        |pointer: &String| format!("PLAINCALL{}", pointer.replace('/', "_")).to_uppercase();
    let pointers = variables();
    let names: Vec<String> = pointers.iter().map(name_of).collect();
    let mut layer = Node::default();
    for name in environment.names_with(PREFIX) {
        if OTHER_VARIABLES.contains(&name) || CALL_VARIABLES.contains(&name) {
            continue;
        }
        let Some(at) = names.iter().position(|known| known == name) else {
            let known = names.iter().map(String::as_str);
            let near = did_you_mean(name, known.chain([USER_FILE, model::KEY]));
            print_note(&format!(
                "unknown variable `{name}`, which is ignored; see `plaincall config --schema` for the keys{near}"
            ));
            continue;
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
        // If the key does not accept text, try a number or a boolean.
        let other = serde_json::from_str::<Value>(text).ok();
        let other = other.filter(|value| value.is_u64() || value.is_boolean());
        let single = match other {
            Some(other) => read(text.into()).or_else(|_| read(other)),
            None => read(text.into()),
        };
        let problem = |problem| Failure::Configuration(format!("{name}: {problem}"));
        layer.overlay(single.map_err(problem)?);
    }
    Ok(layer)
}
