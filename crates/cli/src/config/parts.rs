//! The parts of an agent that a configuration asks for: its model, its tools, its rules and its limits.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use plaincall::call::nearest_name;
use plaincall::{Pattern, Policy, Rule, Rules, Tool, Toolbox, Verdict};
use plaincall_agent::AgentLimits;
use plaincall_agent::builtin::{Builtin, BuiltinError, BuiltinTool};
use plaincall_agent::http::{HttpSettings, Proxy};
use plaincall_agent::mcp::{McpConfig, McpOptions, McpServers};
use plaincall_agent::model::{Anthropic, Json, Key, Model, OpenAi, Replay};
use plaincall_syntax::Dialect;
use serde_json::json;

use crate::config::check::dialect;
use crate::config::contents::{self, Effect, FilePath, Kind, ModelEntry, RuleEntry};
use crate::config::options::GIVEN;
use crate::config::{Configuration, From, MODEL_KEY, layer};
use crate::environment::Environment;
use crate::serve::REPLAY;
use crate::serve::source::Source;
use crate::status::{Failure, remark};
use crate::talk::Person;
use crate::tools_file::{self, Tools};

/// The servers that the usual keys of the environment are for.
const USUAL_KEYS: [(&str, &str); 2] = [
    ("api.openai.com", "OPENAI_API_KEY"),
    ("api.anthropic.com", "ANTHROPIC_API_KEY"),
];

/// A model that somebody has chosen.
#[derive(Clone, Debug)]
pub(crate) struct Chosen {
    /// What it was called.
    pub(crate) name: String,
    pub(crate) entry: ModelEntry,
}

/// A model that can be asked, and how it is taught.
pub(crate) struct Ready {
    pub(crate) name: String,
    pub(crate) model: Arc<dyn Model>,
    pub(crate) dialect: Dialect,
    pub(crate) is_keyed: bool,
}

/// The tools of an agent.
pub(crate) struct Equipment {
    pub(crate) toolbox: Toolbox,
    /// What may run: what the configuration says, then what the files of tools say of their own.
    pub(crate) rules: Rules,
    pub(crate) policy: Policy,
    /// The servers behind some of the tools; they end when it is dropped.
    pub(crate) servers: Option<McpServers>,
}

impl Configuration {
    /// The model of this name, or the one that is asked if none is named.
    ///
    /// # Errors
    /// There is none of this name, or none is named.
    pub(crate) fn chosen(&self, name: Option<&str>) -> Result<Chosen, Failure> {
        let Some(name) = name.or(self.contents.model.as_deref()) else {
            return Err(self.no_model());
        };
        let entry = if let Some(entry) = self.contents.models.get(name) {
            entry.clone()
        } else if let Some((scheme, id)) = name.split_once(':') {
            let entry = |url: &str, kind| ModelEntry {
                url: Some(url.to_owned()),
                kind,
                model: Some(id.to_owned()),
                ..ModelEntry::default()
            };
            match scheme {
                _ if id.is_empty() => return Err(self.unknown_model(name)),
                "ollama" => entry("http://localhost:11434/v1", Kind::OpenAi),
                "openai" => entry("https://api.openai.com/v1", Kind::OpenAi),
                "anthropic" => entry("https://api.anthropic.com/v1", Kind::Anthropic),
                "replay" => ModelEntry {
                    replay: Some(FilePath(id.into())),
                    ..ModelEntry::default()
                },
                _ => return Err(self.unknown_model(name)),
            }
        } else {
            return Err(self.unknown_model(name));
        };
        Ok(Chosen {
            name: name.to_owned(),
            entry,
        })
    }

    /// The names of the models that have a table.
    pub(crate) fn model_names(&self) -> impl Iterator<Item = &str> {
        self.contents.models.keys().map(String::as_str)
    }

    fn no_model(&self) -> Failure {
        let own = match &self.user_file {
            Some(file) => format!("`model` in {}", file.display()),
            None => "`model` in a configuration file".to_owned(),
        };
        let names: Vec<&str> = self.model_names().collect();
        let names = match names.as_slice() {
            [] => String::new(),
            names => format!(" ({})", names.join(", ")),
        };
        Failure::Configuration(format!(
            "no model is named: say `--model NAME`{names}, such as `--model ollama:qwen3` or `--model {REPLAY}FILE`, or set {own}"
        ))
    }

    fn unknown_model(&self, name: &str) -> Failure {
        let near = nearest_name(name, self.model_names());
        let near = near.map(|near| format!("; perhaps `{near}` is meant"));
        Failure::Configuration(format!(
            "there is no model `{name}`{}; a model has a table `[models.NAME]`, or is one of `ollama:ID`, `openai:ID`, `anthropic:ID` and `{REPLAY}FILE`, or is named with `--url`",
            near.unwrap_or_default()
        ))
    }

    /// Makes the model ready to be asked. Nothing is sent yet.
    ///
    /// # Errors
    /// Its key is not there, its recorded replies cannot be read, its address is none.
    pub(crate) fn model(
        &self,
        chosen: &Chosen,
        environment: &Environment,
    ) -> Result<Ready, Failure> {
        let entry = &chosen.entry;
        let ready = |model| Ready {
            name: chosen.name.clone(),
            model,
            dialect: dialect(entry),
            is_keyed: entry.keyed,
        };
        if let Some(file) = &entry.replay {
            let (name, text) = tools_file::read(file)?;
            let replay = Replay::read(&text)
                .map_err(|error| Failure::Configuration(format!("{name}: {error}")))?;
            return Ok(ready(Arc::new(replay)));
        }
        let url = entry.url.clone().unwrap_or_default();
        let id = entry.model.clone().unwrap_or_else(|| chosen.name.clone());
        let key = self.key(chosen, &url, environment)?.map(Key::new);
        let extra = entry
            .extra
            .iter()
            .map(|(name, value)| (name.clone(), Json::new(value)));
        let wrong = |error: plaincall_agent::model::ModelError| {
            Failure::Configuration(format!("the model `{}`: {error}", chosen.name))
        };
        let model: Arc<dyn Model> = match entry.kind {
            Kind::OpenAi => {
                let mut model = OpenAi::new(url, id).http(http(environment));
                if let Some(key) = key {
                    model = model.key(key);
                }
                if let Some(temperature) = entry.temperature {
                    model = model.temperature(temperature);
                }
                if let Some(tokens) = entry.max_tokens {
                    model = model.max_tokens(tokens);
                }
                for (name, value) in extra {
                    model = model.field(name, value);
                }
                model.check().map_err(wrong)?;
                Arc::new(model)
            }
            Kind::Anthropic => {
                let mut model = Anthropic::at(url, id).http(http(environment));
                if let Some(key) = key {
                    model = model.key(key);
                }
                if let Some(temperature) = entry.temperature {
                    model = model.temperature(temperature);
                }
                if let Some(tokens) = entry.max_tokens {
                    model = model.max_tokens(tokens);
                }
                for (name, value) in extra {
                    model = model.field(name, value);
                }
                model.check().map_err(wrong)?;
                Arc::new(model)
            }
        };
        Ok(ready(model))
    }

    /// The key of a model: the one that is named for it, or the usual one for the server that it is for.
    fn key(
        &self,
        chosen: &Chosen,
        url: &str,
        environment: &Environment,
    ) -> Result<Option<String>, Failure> {
        let entry = &chosen.entry;
        let word = |source: Option<Source>| source.map(|source| source.word("key")).transpose();
        if let Some(file) = &entry.key_file {
            return word(Source::of(Some(file), "", environment)?);
        }
        if let Some(variable) = &entry.key_env {
            let key = word(Source::of(None, variable, environment)?)?;
            return key.map(Some).ok_or_else(|| {
                Failure::Configuration(format!(
                    "the key of the model `{}` is to come from the variable {variable}, which is not set",
                    chosen.name
                ))
            });
        }
        // A file that has a table of this name has not been told this key.
        let given = layer::below("models", GIVEN);
        if chosen.name == GIVEN
            && self.origin(&given).from == From::Options
            && let Some(key) = word(Source::of(None, MODEL_KEY, environment)?)?
        {
            return Ok(Some(key));
        }
        let host = secure_host(url);
        let usual = USUAL_KEYS.iter().find(|(known, _)| host == Some(known));
        let Some((host, variable)) = usual else {
            return Ok(None);
        };
        let key = word(Source::of(None, variable, environment)?)?;
        key.map(Some).ok_or_else(|| {
            Failure::Configuration(format!(
                "{host} wants a key: set the variable {variable}, or name another source with `key_env` or `key_file` in the table of the model"
            ))
        })
    }

    /// The tools that the configuration names, and what may run of them. `person` is whom the model can ask.
    ///
    /// # Errors
    /// A file has mistakes, which are shown; two tools have one name; a rule is about a tool that is probably misspelled.
    pub(crate) async fn equipment(
        &self,
        environment: &Environment,
        person: Option<Person>,
    ) -> Result<Equipment, Failure> {
        let mut toolbox = Toolbox::default();
        let mut rules: Rules = self.contents.rules.iter().map(rule).collect();
        let mut policy = None;
        for tool in self.builtin_tools(person)? {
            add(&mut toolbox, tool)?;
        }
        for file in &self.contents.tools {
            let (name, text) = self.text(file)?;
            let tools = tools_file::load_text(&name, &text, file)?;
            for tool in tools.toolbox() {
                add(&mut toolbox, tool.clone())?;
            }
            for rule in own_rules(&tools) {
                rules.push(rule);
            }
            policy.get_or_insert(tools.policy);
        }
        let servers = self.servers(environment).await?;
        if let Some(servers) = &servers {
            for tool in servers.tools_for(&toolbox) {
                add(&mut toolbox, tool)?;
            }
        }
        self.refuse_misspelled(&toolbox)?;
        if !toolbox.is_empty() {
            // It is refused if there is one of this name.
            let _ = toolbox.add(Tool::read_result());
        }
        let mut policy = policy.unwrap_or_default();
        if let Some(count) = self.contents.limits.concurrent {
            policy.concurrent = count;
        }
        Ok(Equipment {
            toolbox,
            rules,
            policy,
            servers,
        })
    }

    /// The built-in tools, if there is a directory for them.
    fn builtin_tools(&self, person: Option<Person>) -> Result<Vec<Tool>, Failure> {
        let contents::Builtin { directory, tools } = &self.contents.builtin;
        let Some(directory) = directory else {
            return Ok(Vec::new());
        };
        let broken = |error: BuiltinError| Failure::Configuration(error.to_string());
        let mut builtin = Builtin::in_directory(&directory.0).map_err(broken)?;
        if let Some(names) = tools {
            let mut chosen = Vec::new();
            for name in names {
                chosen.push(BuiltinTool::from_name(name).ok_or_else(|| unknown_builtin(name))?);
            }
            builtin = builtin.only(chosen);
        }
        if let Some(person) = person {
            builtin = builtin.user(person);
        }
        builtin.tools().map_err(broken)
    }

    /// Connects to the MCP servers. Those that cannot be used are named, and the others work without them.
    async fn servers(&self, environment: &Environment) -> Result<Option<McpServers>, Failure> {
        let mut wanted = McpConfig::default();
        let is_projects = |path: &str| self.origin(path).from == From::Project;
        let variable = |name: &str| environment.get_set(name)?.to_str().map(str::to_owned);
        for file in &self.contents.mcp.files {
            let (name, text) = self.text(file)?;
            // Keys may be among the variables, and a project's file cannot hand them on.
            let read = if is_projects("mcp.files") {
                McpConfig::read(&text, &file.0, |_| None)
            } else {
                McpConfig::read(&text, &file.0, variable)
            };
            let read = read.map_err(|error| {
                for mistake in &error.mistakes {
                    let position = (mistake.line, mistake.column);
                    tools_file::show(
                        &name,
                        &text,
                        &mistake.message,
                        mistake.span.clone(),
                        position,
                    );
                }
                Failure::Configuration(format!("{name} has mistakes, so nothing is done"))
            })?;
            wanted.servers.extend(read.servers);
        }
        for (name, server) in &self.contents.mcp.servers {
            let text = json!({"mcpServers": {name: server}}).to_string();
            let path = layer::below("mcp.servers", name);
            let read = if is_projects(&path) {
                McpConfig::read(&text, "/", |_| None)
            } else {
                McpConfig::read(&text, "/", variable)
            };
            let read = read.map_err(|error| {
                let messages: Vec<&str> = error
                    .mistakes
                    .iter()
                    .map(|mistake| mistake.message.as_str())
                    .collect();
                Failure::Configuration(format!("`{path}`: {}", messages.join("; ")))
            })?;
            wanted.servers.retain(|known| known.name != *name);
            wanted.servers.extend(read.servers);
        }
        if wanted.servers.is_empty() {
            return Ok(None);
        }
        let mut options = McpOptions::default();
        options.environment = environment.clone().into_variables();
        options.http = http(environment);
        let servers = McpServers::connect(wanted, options)
            .await
            .map_err(|error| Failure::Broken(error.to_string()))?;
        for failure in servers.failures() {
            remark(&format!("{failure}; its tools are missing"));
        }
        for skipped in servers.skipped() {
            remark(&format!(
                "the tool `{}` of the MCP server `{}` is not taken: {}",
                skipped.tool, skipped.server, skipped.reason
            ));
        }
        Ok(Some(servers))
    }

    /// A rule that forbids and whose tool is not there is fine, unless there is one with nearly that name: then it
    /// would leave open what it should close.
    fn refuse_misspelled(&self, toolbox: &Toolbox) -> Result<(), Failure> {
        let names = || toolbox.iter().map(Tool::name);
        for (index, rule) in self.contents.rules.iter().enumerate() {
            for written in rule.tools.texts() {
                let pattern = Pattern::new(written.as_str());
                if written.contains(['*', '?']) || names().any(|name| pattern.matches(name)) {
                    continue;
                }
                if let Some(near) = nearest_name(written, names()) {
                    let origin = self.origin(&format!("rules[{index}]"));
                    let place = origin
                        .place
                        .as_ref()
                        .map(|place| format!(" ({}, {place})", origin.from));
                    let message = format!(
                        "a rule{} is about the tool `{written}`, which is not there; perhaps `{near}` is meant",
                        place.unwrap_or_default()
                    );
                    let project = self.project.as_ref();
                    // Whoever wrote that cannot keep anybody from working.
                    if origin.from == From::Project && !project.is_some_and(|it| it.is_trusted) {
                        remark(&message);
                        continue;
                    }
                    return Err(Failure::Configuration(message));
                }
            }
        }
        Ok(())
    }

    /// How far an answer may go.
    pub(crate) fn limits(&self) -> AgentLimits {
        let contents::Limits {
            turns,
            calls,
            time,
            tokens,
            repairs,
            same_failure,
            context,
            concurrent: _,
        } = &self.contents.limits;
        let mut limits = AgentLimits::default();
        let set = |place: &mut u32, value: &Option<u32>| *place = value.unwrap_or(*place);
        set(&mut limits.turns, turns);
        set(&mut limits.calls, calls);
        set(&mut limits.repairs, repairs);
        set(&mut limits.same_failure, same_failure);
        limits.time = time.map_or(limits.time, |time| time.0);
        limits.tokens = tokens.map(u64::from);
        limits.context = context.map(u64::from);
        limits
    }

    /// The words that the model is told first.
    ///
    /// # Errors
    /// Their file cannot be read.
    pub(crate) fn system(&self) -> Result<String, Failure> {
        match (&self.contents.system, &self.contents.system_file) {
            (_, Some(file)) => Ok(self.text(file)?.1),
            (Some(words), None) => Ok(words.clone()),
            (None, None) => Ok(String::new()),
        }
    }

    /// Where sessions are kept.
    ///
    /// # Errors
    /// There is no place for them.
    pub(crate) fn session_directory(&self) -> Result<PathBuf, Failure> {
        self.sessions().ok_or_else(|| {
            Failure::Configuration(
                "there is no place for sessions: set `HOME`, or `sessions` in the configuration"
                    .to_owned(),
            )
        })
    }
}

/// How connections are made: through the proxies that the environment names.
pub(crate) fn http(environment: &Environment) -> HttpSettings {
    let named = |names: [&str; 2]| {
        let value = names.into_iter().find_map(|name| environment.get(name));
        value.and_then(|value| value.to_str()).map(str::to_owned)
    };
    let mut proxy = Proxy::default();
    // The name in capitals can be set by whoever sends a request to a program behind a web server.
    proxy.http = named(["http_proxy", "http_proxy"]);
    proxy.https = named(["https_proxy", "HTTPS_PROXY"]);
    proxy.except = named(["no_proxy", "NO_PROXY"]).unwrap_or_default();
    let mut settings = HttpSettings::default();
    settings.proxy = Some(proxy);
    settings
}

fn add(toolbox: &mut Toolbox, tool: Tool) -> Result<(), Failure> {
    toolbox
        .add(tool)
        .map_err(|error| Failure::Configuration(error.to_string()))
}

/// The rules of a file of tools, for its own tools alone: one that is about all of them is not about those of others.
fn own_rules(tools: &Tools) -> Vec<Rule> {
    let read_result = Tool::read_result();
    let names = || {
        let own = tools.toolbox().iter().map(Tool::name);
        own.chain([read_result.name()])
    };
    let mut rules = Vec::new();
    for rule in &tools.rules {
        let about = names().filter(|name| rule.tools.iter().any(|pattern| pattern.matches(name)));
        let mut own = rule.clone();
        own.tools = about.map(Pattern::new).collect();
        rules.push(own);
    }
    rules
}

fn rule(entry: &RuleEntry) -> Rule {
    let patterns = entry.tools.texts().iter();
    Rule {
        tools: patterns.map(|text| Pattern::new(text.as_str())).collect(),
        effect: entry.effect.map(|effect| match effect {
            Effect::Read => plaincall::Effect::Read,
            Effect::Idempotent => plaincall::Effect::Idempotent,
            Effect::Write => plaincall::Effect::Write,
        }),
        arguments: entry
            .arguments
            .iter()
            .map(|(pointer, pattern)| (pointer.clone(), Pattern::new(pattern.as_str())))
            .collect(),
        verdict: match entry.verdict {
            contents::Verdict::Allow => Verdict::Allow,
            contents::Verdict::Ask => Verdict::Ask,
            contents::Verdict::Deny => Verdict::Deny {
                reason: entry.reason.clone().unwrap_or_default(),
            },
        },
    }
}

/// The host of an address that is reached over a connection that nobody else can read.
fn secure_host(url: &str) -> Option<&str> {
    let rest = url.strip_prefix("https://")?;
    let authority = rest.split(['/', '?', '#', '\\']).next()?;
    if authority.contains('@') {
        return None;
    }
    Some(authority.strip_suffix(":443").unwrap_or(authority))
}

/// A path that is read relative to where the command was started.
pub(crate) fn whole(path: &Path) -> PathBuf {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
}

/// What there is to say about a built-in tool that is not there.
fn unknown_builtin(name: &str) -> Failure {
    let names: Vec<&str> = BuiltinTool::ALL
        .into_iter()
        .map(BuiltinTool::name)
        .collect();
    let near = nearest_name(name, names.iter().copied());
    let near = near.map(|near| format!("; perhaps `{near}` is meant"));
    Failure::Configuration(format!(
        "`builtin.tools`: there is no built-in tool `{name}`; they are {}{}",
        names.join(", "),
        near.unwrap_or_default()
    ))
}

#[cfg(test)]
mod tests {
    use super::secure_host;

    #[test]
    fn where_usual_keys_go() {
        for (url, expected) in [
            ("https://api.openai.com/v1", Some("api.openai.com")),
            ("https://api.openai.com:443/v1", Some("api.openai.com")),
            ("http://api.openai.com/v1", None),
            ("https://api.openai.com@evil.example/v1", None),
            ("https://evil.example/api.openai.com", Some("evil.example")),
            (
                "https://evil.example\\@api.openai.com",
                Some("evil.example"),
            ),
            (
                "https://api.openai.com.evil.example",
                Some("api.openai.com.evil.example"),
            ),
            (
                "https://api.openai.com:8443/v1",
                Some("api.openai.com:8443"),
            ),
        ] {
            assert_eq!(secure_host(url), expected, "{url}");
        }
    }
}
