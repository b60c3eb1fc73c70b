//! Named agents that are tools of the agent of a conversation.

use std::collections::BTreeMap;
use std::sync::Arc;

use plaincall::{Dialect, Policy, Toolbox};
use plaincall_agent::model::Model;
use plaincall_agent::{Agent, AgentBuilder};
use plaincall_config::settings::Model as ModelSettings;

use crate::commands::conversation::build::{not_built, report};
use crate::environment::Environment;
use crate::settings::Configuration;
use crate::status::Failure;
use crate::terminal::user::TerminalUser;

/// The settings of the agent of the conversation that its subagents share.
pub(super) struct Shared<'c> {
    /// The model of agents that set none, and its settings.
    pub(super) model: (Arc<dyn Model>, &'c ModelSettings),
    pub(super) dialect: &'c Dialect,
    pub(super) policy: Policy,
    pub(super) user: Option<&'c TerminalUser>,
    pub(super) environment: &'c Environment,
}

/// The agents below the agent of the conversation.
#[derive(Default)]
pub(super) struct Subagents {
    /// Their names, the deepest first.
    pub(super) names: Vec<String>,
    pub(super) configurations: Vec<Configuration>,
    agents: BTreeMap<String, Agent>,
}

/// Adds agents after those that they have as tools. Their depth is limited.
fn collect(configuration: &Configuration, agents: &[String], names: &mut Vec<String>) {
    for name in agents {
        if let Some(agent) = configuration.settings.agents.get(name) {
            collect(configuration, &agent.agents, names);
        }
        if !names.contains(name) {
            names.push(name.clone());
        }
    }
}

impl Subagents {
    /// Reads their settings.
    pub(super) fn of(configuration: &Configuration) -> Result<Self, Failure> {
        let mut names = Vec::new();
        collect(configuration, configuration.subagents(), &mut names);
        let configurations = names.iter().map(|name| configuration.of_subagent(name));
        Ok(Self {
            configurations: configurations.collect::<Result<Vec<_>, Failure>>()?,
            names,
            agents: BTreeMap::new(),
        })
    }

    /// Builds the agents with these tools.
    pub(super) async fn build(
        &mut self,
        toolboxes: Vec<Toolbox>,
        shared: &Shared<'_>,
    ) -> Result<(), Failure> {
        let named = self.names.iter().zip(&self.configurations);
        for ((name, configuration), tools) in named.zip(toolboxes) {
            let agent = self.agent(name, configuration, tools, shared).await?;
            self.agents.insert(name.clone(), agent);
        }
        Ok(())
    }

    async fn agent(
        &self,
        name: &str,
        configuration: &Configuration,
        tools: Toolbox,
        shared: &Shared<'_>,
    ) -> Result<Agent, Failure> {
        let for_agent = |failure: Failure| {
            let message = failure.message();
            Failure::Configuration(format!("the agent `{name}`: {message}"))
        };
        let own = configuration.own_model().map(|model| {
            let mut chosen = configuration.chosen(Some(model))?;
            chosen.entry = chosen.measured();
            let ready = chosen.ready(shared.environment)?;
            Ok((ready.model, chosen.entry))
        });
        let own = own.transpose().map_err(for_agent)?;
        let (model, entry) = match own {
            Some((model, entry)) => (model, entry),
            None => (Arc::clone(&shared.model.0), shared.model.1.clone()),
        };
        let mut builder = Agent::builder(model)
            .tools(tools)
            .dialect(shared.dialect.clone())
            .system(configuration.system().map_err(for_agent)?)
            .policy(shared.policy)
            .limits(configuration.limits(&entry))
            .on_no_tool_call(configuration.without_call())
            .few_shot(entry.examples.clone(), entry.few_shot());
        if let Some(user) = shared.user {
            builder = builder.user(user.clone());
        }
        let agent = self.with(builder, configuration).build();
        let model = configuration.own_model().unwrap_or_default();
        let agent = agent.map_err(|error| for_agent(not_built(&error, model, configuration)))?;
        report(&agent).await.map_err(for_agent)?;
        Ok(agent)
    }

    /// Gives an agent the agents that it has as tools.
    pub(super) fn with(
        &self,
        mut builder: AgentBuilder,
        configuration: &Configuration,
    ) -> AgentBuilder {
        for name in configuration.subagents() {
            let table = configuration.settings.agents.get(name);
            let description = table.and_then(|agent| agent.description.clone());
            if let Some(agent) = self.agents.get(name) {
                builder = builder.subagent(name, description.unwrap_or_default(), agent.clone());
            }
        }
        builder
    }
}
