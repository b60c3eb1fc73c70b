//! Checks settings that are well-formed but make no sense.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use plaincall_names::did_you_mean;

use super::model_name::PROVIDERS;
use super::paths::is_below;
use super::{Builtin, Mcp, Serve, Settings, schema};
use crate::node::last_key;
use crate::{Document, FileDiagnostic, FileError, Location, Node, child};

/// Servers with the API of `OpenAI`.
const COMPATIBLE: &str = "ollama llama.cpp llamacpp lmstudio vllm gemini";

/// The maximum number of agents from one to the deepest of those that it has as tools.
pub const MAX_AGENT_DEPTH: usize = 4;

/// A location and a message with the fix.
pub(super) type Problems = Vec<(Location, String)>;

/// Reads a settings file as a layer. For a project's file, `project` has its directory and the home directory.
///
/// # Errors
/// Returns all problems of the file.
pub fn read_settings(
    file: &str,
    text: &str,
    project: Option<(&Path, Option<&Path>)>,
) -> Result<Node, FileError> {
    let mut document = Document::toml(file, text);
    let mut settings: Settings = document.read("").unwrap_or_default();
    let mut problems = settings.problems();
    if let Some((folder, home)) = project {
        problems.extend(settings.project_problems(folder, home));
    }
    for (place, message) in problems {
        document.problem(&place, message);
    }
    for (at, _, mcp) in settings.tool_sources() {
        for (name, server) in &mcp.servers {
            let servers = format!("{at}/mcp/servers");
            server.check_keys(&child(&servers, name), &mut document);
        }
    }
    let layer = document.root().clone();
    document.finish(layer).map_err(|mut error| {
        error.problems.iter_mut().for_each(advise);
        error.problems.iter_mut().for_each(name_table);
        error
    })
}

/// Names the table of a key that is in another one.
fn name_table(problem: &mut FileDiagnostic) {
    let key = last_key(&problem.pointer);
    let unknown = format!("unknown key `{key}`");
    if !problem.message.starts_with(&unknown) {
        return;
    }
    let schema = schema();
    let has = |pointer: &str| {
        schema
            .pointer(&format!("{pointer}/properties/{key}"))
            .is_some()
    };
    let of_model = "`[models.NAME]`; `[models.\"*\"]` is for models without a better match";
    let table = problem.pointer.split('/').nth(1).unwrap_or_default();
    let belongs = match table {
        "serve" if key == "upstream" => format!("use `url` in a table {of_model}"),
        "serve" if matches!(&*key, "keys" | "secret") => format!("did you mean `{key}_file`?"),
        "serve" if has("/properties/models/additionalProperties") => {
            format!("it belongs in a table {of_model}")
        }
        "serve" if has("") => "it belongs at the top level, above all tables".to_owned(),
        "models" if has("/properties/serve") => "it belongs in the table `[serve]`".to_owned(),
        name if name == key && has("/properties/serve") => {
            "it belongs in the table `[serve]`".to_owned()
        }
        _ => return,
    };
    problem.message = format!("{unknown}: {belongs}");
}

/// Adds the fix for keys that other programs use in the table of a model.
fn advise(problem: &mut FileDiagnostic) {
    let FileDiagnostic {
        pointer, message, ..
    } = problem;
    let key = last_key(pointer);
    match key.as_str() {
        "model" if pointer == "/model" && message.contains("is a table") => {
            message.push_str("; the table of a model is `[models.NAME]`");
        }
        _ if !pointer.starts_with("/models/") => {}
        "api_key" | "apiKey" | "key" | "token" => {
            *message = format!(
                "unknown key `{key}`: a configuration cannot contain secrets; use `key_env = \"VARIABLE\"` or `key_file = \"FILE\"`"
            );
        }
        "num_ctx" | "context" | "context_length" => {
            *message = format!(
                "unknown key `{key}`: set the context length on the model server, and as `context` in `[limits]`; see docs/local-models.md"
            );
        }
        "kind" => {
            let small = message.to_ascii_lowercase();
            let is_it = |server: &&str| small.contains(&format!("cannot be `{server}`"));
            if let Some(server) = COMPATIBLE.split(' ').find(is_it) {
                let _ = write!(message, "; {server} uses `openai`");
            }
        }
        _ => {}
    }
}

impl Settings {
    /// Reports all settings that make no sense.
    pub fn problems(&self) -> Problems {
        let mut problems = Vec::new();
        if self.system.is_some() && self.system_file.is_some() {
            let message = "`system` and `system_file` cannot both be set; remove one";
            problems.push((Location::key("/system_file"), message.to_owned()));
        }
        for (name, agent) in &self.agents {
            if agent.system.is_some() && agent.system_file.is_some() {
                let place = child(&child("/agents", name), "system_file");
                let message = "`system` and `system_file` cannot both be set; remove one";
                problems.push((Location::key(place), message.to_owned()));
            }
        }
        for (name, entry) in &self.models {
            let place = |key| Location::key(child(&child("/models", name), key));
            let provider = name.split(':').next().unwrap_or_default();
            let problem = if PROVIDERS.contains(&provider) {
                let message = format!(
                    "invalid model name `{name}`: names that begin with `openai:`, `anthropic:`, `ollama:` or `replay:` need no table; choose another name"
                );
                Some(("url", message))
            } else {
                entry.problem()
            };
            problems.extend(problem.map(|(key, message)| (place(key), message)));
        }
        let serve = self.serve.problem();
        problems.extend(serve.map(|(key, message)| (Location::key(child("/serve", key)), message)));
        for (index, entry) in self.rules.iter().enumerate() {
            problems.extend(entry.problems(&format!("/rules/{index}")));
        }
        problems
    }

    /// Reports problems of the agents that agents have as tools. Only for merged settings, because the agents may be in
    /// different files.
    pub fn agent_problems(&self) -> Problems {
        let mut problems = Vec::new();
        for (name, agent) in &self.agents {
            for (index, subagent) in agent.agents.iter().enumerate() {
                let message = match self.agents.get(subagent) {
                    None => {
                        let names = self.agents.keys().map(String::as_str);
                        let near = match did_you_mean(subagent, names) {
                            near if near.is_empty() => {
                                format!("; add a table `[agents.{subagent}]`")
                            }
                            near => near,
                        };
                        format!("unknown agent `{subagent}`{near}")
                    }
                    Some(_) if agent.agents.iter().take(index).any(|it| it == subagent) => {
                        format!("duplicate agent `{subagent}`")
                    }
                    Some(known) if known.description.is_none() => format!(
                        "the agent `{subagent}` has no `description`; add one to its table, because the model of `{name}` reads it"
                    ),
                    Some(_) => continue,
                };
                problems.push((subagent_location(name, index), message));
            }
        }
        problems.extend(self.nesting_problem());
        problems
    }

    /// Reports the first agent that is nested too deeply, or in itself.
    fn nesting_problem(&self) -> Option<(Location, String)> {
        let mut depths: BTreeMap<&str, usize> = BTreeMap::new();
        let subagents = |name: &str| self.agents.get(name).map_or(&[][..], |it| &it.agents);
        for _ in 0..=MAX_AGENT_DEPTH {
            let depth = |name: &str| depths.get(name).copied().unwrap_or_default();
            let deepest = |name| subagents(name).iter().map(|it| depth(it)).max();
            let next = |name| (name, 1 + deepest(name).unwrap_or_default());
            depths = self.agents.keys().map(String::as_str).map(next).collect();
        }
        let is_too_deep = |(_, depth): &(&&str, &usize)| **depth > MAX_AGENT_DEPTH;
        let (first, _) = depths.iter().find(is_too_deep)?;
        let mut path = vec![*first];
        loop {
            let last = *path.last()?;
            let deepest = |(_, name): &(usize, &String)| depths.get(name.as_str()).copied();
            let (index, next) = subagents(last).iter().enumerate().max_by_key(deepest)?;
            let place = path.iter().position(|name| name == next);
            path.push(next);
            let chain = |path: &[&str]| path.join(" -> ");
            let message = match place {
                Some(place) => {
                    let cycle = chain(path.get(place..).unwrap_or_default());
                    format!("the agents form a cycle: {cycle}; remove one of the references")
                }
                None if path.len() > MAX_AGENT_DEPTH => format!(
                    "agents are nested more than {MAX_AGENT_DEPTH} deep: {}",
                    chain(&path)
                ),
                None => continue,
            };
            return Some((subagent_location(last, index), message));
        }
    }

    /// Returns the built-in tools and the MCP servers, of the top level and of each agent, with the pointer above them.
    fn tool_sources(&self) -> impl Iterator<Item = (String, &Builtin, &Mcp)> {
        let agents = self.agents.iter();
        let agents =
            agents.map(|(name, agent)| (child("/agents", name), &agent.builtin, &agent.mcp));
        [(String::new(), &self.builtin, &self.mcp)]
            .into_iter()
            .chain(agents)
    }

    /// Reports the keys that a project's file must not set.
    fn project_problems(&mut self, folder: &Path, home: Option<&Path>) -> Problems {
        let mut problems = Vec::new();
        let mut own = |is_set: bool, table: &str, key: &str| {
            if is_set {
                let message = format!(
                    "`{key}` is not allowed in a project's file; set it in your own file (`plaincall config` shows its path)"
                );
                problems.push((Location::key(child(table, key)), message));
            }
        };
        for (name, model) in &self.models {
            let table = child("/models", name);
            own(model.key_env.is_some(), &table, "key_env");
            own(model.key_file.is_some(), &table, "key_file");
        }
        own(self.sessions.is_some(), "", "sessions");
        own(self.serve != Serve::default(), "", "serve");
        for (at, builtin, _) in self.tool_sources() {
            let passes_on = !builtin.command_environment.is_empty();
            own(passes_on, &format!("{at}/builtin"), "command_environment");
        }
        let models = self.models.iter().flat_map(|(name, model)| {
            let at = child(&child("/models", name), "headers");
            let headers = model.headers.iter();
            headers.map(move |(key, value)| (child(&at, key), value.as_str()))
        });
        let servers = self.tool_sources().flat_map(|(at, _, mcp)| {
            let at = format!("{at}/mcp/servers");
            mcp.servers
                .iter()
                .map(move |(name, server)| (child(&at, name), server))
        });
        let servers = servers.flat_map(|(at, server)| {
            let pairs = [("env", &server.env), ("headers", &server.headers)];
            let in_table = at.clone();
            let pairs = pairs.into_iter().flat_map(move |(table, values)| {
                let at = child(&in_table, table);
                (values.iter()).map(move |(key, value)| (child(&at, key), value.0.as_str()))
            });
            let cwd = server.cwd.as_ref().and_then(|cwd| cwd.0.to_str());
            pairs.chain(cwd.map(|cwd| (child(&at, "cwd"), cwd)))
        });
        for (pointer, _) in models
            .chain(servers)
            .filter(|(_, value)| value.contains("${"))
        {
            let message = "a project's file cannot use your environment variables, because they may contain keys; put this server into your own file";
            problems.push((Location::key(pointer), message.to_owned()));
        }
        for (pointer, path) in self.paths() {
            if !is_below(&path.resolve(folder, home), folder) {
                let path = path.0.display();
                let message = format!(
                    "`{path}` is outside the project, which a project's file cannot access; put it into your own file"
                );
                problems.push((Location::value(pointer), message));
            }
        }
        problems
    }
}

fn subagent_location(agent: &str, index: usize) -> Location {
    Location::value(format!("{}/agents/{index}", child("/agents", agent)))
}
