//! The tools, rules and limits of an agent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use plaincall::names::nearest_name;
use plaincall::{
    Policy, Rules, Tool, Toolbox,
    rules::{Pattern, Rule},
};
use plaincall_agent::mcp::{McpConfig, McpOptions, McpServers};
use plaincall_agent::{AgentLimits, OnNoToolCall};
use plaincall_config::settings::{FilePath, Model};
use plaincall_config::tools::{self, RuleTable};
use plaincall_config::{self as config, Node, child, dotted};

use crate::environment::Environment;
use crate::platform::builtin;
use crate::settings::Configuration;
use crate::settings::model::http;
use crate::status::{Failure, print_note};
use crate::terminal::problems;
use crate::terminal::user::TerminalUser;
use crate::tools_file::{self, Tools};

/// The tools and rules of an agent, and the tools of its subagents.
pub(crate) struct ToolSetup {
    pub(crate) toolbox: Toolbox,
    /// The tools of all agents.
    pub(crate) all: Toolbox,
    /// The tools of each subagent.
    pub(crate) subagents: Vec<Toolbox>,
    /// The rules of the configuration, then those of the tools files for their own tools.
    pub(crate) rules: Rules,
    pub(crate) policy: Policy,
    /// The connected MCP servers. Dropping them ends their processes.
    pub(crate) servers: Vec<McpServers>,
}

/// The sources of tools that were read. Agents with the same source share its tools.
#[derive(Default)]
struct Sources {
    /// Built-in tools by their settings, without the choice of tools.
    builtin: Vec<(config::settings::Builtin, Vec<Tool>)>,
    files: BTreeMap<PathBuf, Tools>,
    /// MCP servers by their tables.
    servers: Vec<(Option<Node>, McpServers)>,
    /// The rules of the tools files.
    rules: Vec<Rule>,
}

/// Closes the servers, after notes about them that are new.
pub(crate) async fn close_servers(all: Vec<McpServers>) {
    for servers in all {
        report_notes(&servers);
        servers.close().await;
    }
}

/// Prints the notes about servers that are new.
pub(crate) fn report_notes(servers: &McpServers) {
    for note in servers.notes() {
        print_note(&note);
    }
}

impl Configuration {
    /// Creates the tools and rules, also those of subagents. `user` answers questions of the model. Prints the errors of
    /// invalid files.
    pub(crate) async fn tool_setup(
        &self,
        subagents: &[Self],
        environment: &Environment,
        user: Option<TerminalUser>,
    ) -> Result<ToolSetup, Failure> {
        let mut sources = Sources::default();
        let agents: Vec<&Self> = std::iter::once(self).chain(subagents).collect();
        for agent in &agents {
            agent.read_builtin(&agents, user.as_ref(), &mut sources)?;
        }
        let mut toolboxes = Vec::new();
        for agent in &agents {
            toolboxes.push(agent.toolbox(environment, &mut sources).await?);
        }
        check_builtin(&agents, &toolboxes)?;
        for (agent, toolbox) in agents.iter().zip(&mut toolboxes) {
            if !toolbox.is_empty() || !agent.subagents().is_empty() {
                // Fails if there is a tool with this name.
                let _ = toolbox.add(Tool::read_result());
            }
        }
        let mut all = Toolbox::default();
        for tool in toolboxes.iter().flat_map(|it| it.iter()) {
            // Fails if another agent has the tool too.
            let _ = all.add(tool.clone());
        }
        self.check_rule_names(&all)?;
        let first = self.settings.tools.first();
        let first = first.and_then(|FilePath(file)| sources.files.get(file));
        let mut policy = first.map_or(Policy::default(), |tools| tools.policy);
        if let Some(count) = self.settings.limits.concurrent {
            policy.concurrent = count;
        }
        let mut rules: Rules = self.settings.rules.iter().map(rule).collect();
        sources.rules.into_iter().for_each(|rule| rules.push(rule));
        let mut toolboxes = toolboxes.into_iter();
        Ok(ToolSetup {
            toolbox: toolboxes.next().unwrap_or_default(),
            all,
            subagents: toolboxes.collect(),
            rules,
            policy,
            servers: sources.servers.into_iter().map(|(_, it)| it).collect(),
        })
    }

    /// Returns the tools of this agent.
    async fn toolbox(
        &self,
        environment: &Environment,
        sources: &mut Sources,
    ) -> Result<Toolbox, Failure> {
        let mut toolbox = Toolbox::default();
        let builtin = self.settings.builtin.all_tools();
        let builtin = sources.builtin.iter().find(|(known, _)| *known == builtin);
        let chosen = self.settings.builtin.tools.as_ref();
        for tool in builtin.into_iter().flat_map(|(_, tools)| tools) {
            if chosen.is_none_or(|names| names.iter().any(|name| name == tool.name())) {
                add(&mut toolbox, tool.clone())?;
            }
        }
        for FilePath(file) in &self.settings.tools {
            if !sources.files.contains_key(file) {
                let (name, text) = self.text(file)?;
                let tools = tools_file::load_text(&name, &text, file)?;
                sources.rules.extend(own_rules(&tools));
                sources.files.insert(file.clone(), tools);
            }
            let Some(tools) = sources.files.get(file) else {
                continue;
            };
            if self.is_of_project("/tools") {
                check_no_variables(&file.display().to_string(), tools)?;
            }
            for tool in tools.toolbox().iter() {
                add(&mut toolbox, tool.clone())?;
            }
        }
        let table = self.tree.get("/mcp").cloned();
        let is_known = |(known, _): &(Option<Node>, McpServers)| *known == table;
        if !sources.servers.iter().any(is_known)
            && let Some(servers) = self.servers(environment).await?
        {
            sources.servers.push((table.clone(), servers));
        }
        let is_own = |(known, _): &&(Option<Node>, McpServers)| *known == table;
        if let Some((_, servers)) = sources.servers.iter().find(is_own) {
            for tool in servers.tools_for(&toolbox) {
                add(&mut toolbox, tool)?;
            }
        }
        Ok(toolbox)
    }

    /// Adds the built-in tools, if a directory is set: those that this agent or others with the same settings choose.
    fn read_builtin(
        &self,
        agents: &[&Self],
        user: Option<&TerminalUser>,
        sources: &mut Sources,
    ) -> Result<(), Failure> {
        let key = self.settings.builtin.all_tools();
        let Some(FilePath(directory)) = &key.directory else {
            return Ok(());
        };
        if sources.builtin.iter().any(|(known, _)| *known == key) {
            return Ok(());
        }
        let sharing = agents.iter().map(|agent| &agent.settings.builtin);
        let sharing = sharing.filter(|it| it.all_tools() == key);
        let chosen: Option<Vec<&Vec<String>>> = sharing.map(|it| it.tools.as_ref()).collect();
        let chosen = chosen.map(|names| names.into_iter().flatten().map(String::as_str).collect());
        let tools = builtin::tools(directory, &key, chosen, user)?;
        sources.builtin.push((key, tools));
        Ok(())
    }

    /// Connects to the MCP servers. Reports servers that fail and continues without them.
    async fn servers(&self, environment: &Environment) -> Result<Option<McpServers>, Failure> {
        let mut config = McpConfig::default();
        let variable = |name: &str| environment.get_set(name)?.to_str().map(str::to_owned);
        // Variables may contain keys, so a project configuration cannot use them.
        let variables_for = |pointer: &str| {
            let is_allowed = !self.is_of_project(pointer);
            move |name: &str| is_allowed.then(|| variable(name)).flatten()
        };
        for FilePath(file) in &self.settings.mcp.files {
            let (name, text) = self.text(file)?;
            let read =
                McpConfig::read(&text, file, variables_for("/mcp/files")).map_err(|error| {
                    let errors = problems::show(&name, &text, &error);
                    Failure::Configuration(format!("{name} has {errors}"))
                })?;
            config.servers.extend(read.servers);
        }
        let home = environment.home();
        for name in self.settings.mcp.servers.keys() {
            let pointer = child("/mcp/servers", name);
            let mut table = Node::default();
            if let Some(server) = self.tree.get(&pointer) {
                table.set(&child("", name), server.clone());
            }
            let directory = self.directory_of(&pointer).unwrap_or_default();
            let read = McpConfig::of_table(table, (&directory, home), variables_for(&pointer));
            let read = read.map_err(|error| {
                let problems = error.problems.iter();
                let messages: Vec<&str> = problems.map(|problem| &*problem.message).collect();
                let (origin, name) = (self.origin(&pointer), dotted(&pointer));
                Failure::Configuration(format!("{origin}: `{name}`: {}", messages.join("; ")))
            })?;
            config.servers.retain(|known| known.name != *name);
            config.servers.extend(read.servers);
        }
        if config.servers.is_empty() {
            return Ok(None);
        }
        let mut options = McpOptions::default();
        options.environment = environment.clone().into_variables();
        options.http = http(environment);
        let servers = McpServers::connect(config, options).await;
        for failure in servers.failures() {
            print_note(&format!("{failure}; its tools are not available"));
        }
        report_notes(&servers);
        for skipped in servers.skipped() {
            let (tool, server, reason) = (&skipped.tool, &skipped.server, &skipped.reason);
            let begin = if skipped.is_dropped {
                "skipped"
            } else {
                "relaxed the definition of"
            };
            print_note(&format!(
                "{begin} the tool `{tool}` of the MCP server `{server}`: {reason}"
            ));
        }
        Ok(Some(servers))
    }

    /// Rejects rules for unknown tools if a similar name exists, because a misspelled rule would not restrict the
    /// intended tool. Rules for other missing tools are fine.
    fn check_rule_names(&self, toolbox: &Toolbox) -> Result<(), Failure> {
        let agents = || self.settings.agents.keys().map(String::as_str);
        let names = || toolbox.iter().map(Tool::name).chain(agents());
        for (index, rule) in self.settings.rules.iter().enumerate() {
            for tool_name in &rule.tools.0 {
                let pattern = Pattern::new(tool_name.as_str());
                if tool_name.contains(['*', '?']) || names().any(|name| pattern.matches(name)) {
                    continue;
                }
                let Some(near) = nearest_name(tool_name, names()) else {
                    continue;
                };
                let pointer = format!("/rules/{index}");
                let origin = self.origin(&pointer);
                let message = format!(
                    "a rule ({origin}) names the unknown tool `{tool_name}`; did you mean `{near}`?"
                );
                let is_trusted = self.project.as_ref().is_some_and(|it| it.is_trusted);
                // An untrusted project must not be able to block the user.
                if is_trusted || !self.is_of_project(&pointer) {
                    return Err(Failure::Configuration(message));
                }
                print_note(&message);
            }
        }
        Ok(())
    }

    /// Returns the limits of a question to this model.
    pub(crate) fn limits(&self, model: &Model) -> AgentLimits {
        AgentLimits::configured(&self.settings.limits, model)
    }

    /// Returns the meaning of a reply without calls.
    pub(crate) fn without_call(&self) -> OnNoToolCall {
        match self.settings.limits.on_no_tool_call {
            None | Some(config::settings::OnNoToolCall::Answer) => OnNoToolCall::Answer,
            Some(config::settings::OnNoToolCall::Ask) => OnNoToolCall::AskUser,
            Some(config::settings::OnNoToolCall::Remind) => OnNoToolCall::Remind,
        }
    }

    /// Returns the system prompt.
    pub(crate) fn system(&self) -> Result<String, Failure> {
        match &self.settings.system_file {
            Some(FilePath(file)) => Ok(self.text(file)?.1),
            None => Ok(self.settings.system.clone().unwrap_or_default()),
        }
    }
}

/// Rejects agents that have the same built-in tool with different settings, because all their calls are in one run, which
/// knows tools by their names.
fn check_builtin(agents: &[&Configuration], toolboxes: &[Toolbox]) -> Result<(), Failure> {
    let mut first: BTreeMap<&str, (&Configuration, &Tool)> = BTreeMap::new();
    for (agent, tools) in agents.iter().zip(toolboxes) {
        for tool in tools.iter() {
            let name = tool.name();
            let (other, known) = *first.entry(name).or_insert((agent, tool));
            let is_builtin = |it: &Configuration| it.settings.builtin.directory.is_some();
            let are_builtin = builtin::is_name(name) && is_builtin(agent) && is_builtin(other);
            if are_builtin && !tool.is_same(known) {
                let names = [other, *agent].map(|it| it.agent().unwrap_or_default());
                return Err(Failure::Configuration(format!(
                    "the agents `{}` and `{}` have the built-in tool `{name}` with different settings; give both the same directory and the same other `builtin` settings, or choose different tools with `builtin.tools`",
                    names[0], names[1]
                )));
            }
        }
    }
    Ok(())
}

fn add(toolbox: &mut Toolbox, tool: Tool) -> Result<(), Failure> {
    let added = toolbox.add(tool);
    added.map_err(|error| Failure::Configuration(error.to_string()))
}

/// Rejects tools of a project that use variables of the user's environment.
fn check_no_variables(name: &str, tools: &Tools) -> Result<(), Failure> {
    for tool in tools.toolbox().iter() {
        if let Some(variable) = tool.environment().first() {
            return Err(Failure::Configuration(format!(
                "{name}: the tool `{}` reads `{variable}` from your environment, which a project cannot do because variables may contain keys; name this file in your user configuration, or remove `environment`",
                tool.name()
            )));
        }
    }
    Ok(())
}

/// Returns the rules of a tools file, restricted to its own tools.
fn own_rules(tools: &Tools) -> impl Iterator<Item = Rule> {
    let read_result = Tool::read_result();
    tools.rules.iter().map(move |rule| {
        let names = tools.toolbox().iter().map(Tool::name);
        let names = names.chain([read_result.name()]);
        let about = names.filter(|name| rule.tools.iter().any(|it| it.matches(name)));
        let mut own = rule.clone();
        own.tools = about.map(Pattern::new).collect();
        own
    })
}

fn rule(table: &RuleTable) -> Rule {
    let names = table.tools.0.iter().map(String::as_str);
    let mut rule = match table.verdict {
        tools::Verdict::Allow => Rule::allow(names),
        tools::Verdict::Ask => Rule::ask(names),
        tools::Verdict::Deny => Rule::deny(names, table.reason.as_deref().unwrap_or_default()),
    };
    rule.effect = table.effect;
    let arguments = table.arguments.iter().flatten();
    arguments.fold(rule, |rule, (pointer, pattern)| {
        rule.argument(pointer, pattern.as_str())
    })
}
