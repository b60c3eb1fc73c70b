//! The parts of an agent that a configuration asks for: its tools, its rules and its limits.

use std::path::{Path, PathBuf};

use plaincall::call::{did_you_mean, nearest_name};
use plaincall::{Pattern, Policy, Rule, Rules, Tool, Toolbox, Verdict};
use plaincall_agent::builtin::{Builtin, BuiltinError, BuiltinTool};
use plaincall_agent::mcp::McpServers;
use plaincall_agent::{AgentLimits, WithoutCall};

use crate::config::contents::{self, Effect, ModelEntry, RuleEntry};
use crate::config::{Configuration, From};
use crate::environment::Environment;
use crate::status::{Failure, remark};
use crate::talk::Person;
use crate::tools_file::{self, Tools};

/// The tools of an agent.
pub(crate) struct Equipment {
    pub(crate) toolbox: Toolbox,
    /// What may run: what the configuration says, then what the files of tools say of their own.
    pub(crate) rules: Rules,
    pub(crate) policy: Policy,
    /// The servers behind some of the tools; they end when it is dropped.
    pub(crate) servers: Option<McpServers>,
}

/// # Errors
/// A file that a project names takes variables of the user's environment.
fn refuse_variables(name: &str, tools: &Tools) -> Result<(), Failure> {
    for tool in tools.toolbox() {
        if let Some(variable) = tool.environment().first() {
            return Err(Failure::Configuration(format!(
                "{name}: the tool `{}` takes `{variable}` of your environment, and a project cannot hand on variables, since keys may be among them; name this file in your own configuration, or leave `environment` out",
                tool.name()
            )));
        }
    }
    Ok(())
}

impl Configuration {
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
            if self.origin("tools").from == From::Project {
                refuse_variables(&name, &tools)?;
            }
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
        let contents::Builtin {
            directory,
            tools,
            fetch_hosts,
            command_timeout,
            command_environment,
        } = &self.contents.builtin;
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
        if let Some(hosts) = fetch_hosts {
            builtin = builtin.fetch_hosts(hosts);
        }
        if let Some(time) = command_timeout {
            builtin = builtin.command_timeout(time.0);
        }
        builtin = builtin.command_environment(command_environment);
        if let Some(person) = person {
            builtin = builtin.user(person);
        }
        builtin.tools().map_err(broken)
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
                        "a rule{} is about the tool `{written}`, which is not there; did you mean `{near}`?",
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

    /// How far an answer of this model may go.
    pub(crate) fn limits(&self, model: &ModelEntry) -> AgentLimits {
        let contents::Limits {
            turns,
            calls,
            time,
            tokens,
            repairs,
            same_failure,
            reminders,
            without_call: _,
            context,
            concurrent: _,
        } = &self.contents.limits;
        let mut limits = AgentLimits::default();
        let set = |place: &mut u32, value: &Option<u32>| *place = value.unwrap_or(*place);
        set(&mut limits.turns, turns);
        set(&mut limits.calls, calls);
        set(&mut limits.repairs, repairs);
        set(&mut limits.same_failure, same_failure);
        set(&mut limits.reminders, reminders);
        limits.time = time.map_or(limits.time, |time| time.0);
        limits.tokens = tokens.map(u64::from);
        limits.context = context.map(u64::from);
        limits.reply_tokens = model.max_tokens;
        limits
    }

    /// What a reply without a call means.
    pub(crate) fn without_call(&self) -> WithoutCall {
        match self.contents.limits.without_call {
            contents::WithoutCall::Answer => WithoutCall::Answer,
            contents::WithoutCall::Ask => WithoutCall::AskBack,
            contents::WithoutCall::Remind => WithoutCall::Remind,
        }
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
    Failure::Configuration(format!(
        "`builtin.tools`: there is no built-in tool `{name}`; they are {}{}",
        names.join(", "),
        did_you_mean(name, names.iter().copied())
    ))
}
