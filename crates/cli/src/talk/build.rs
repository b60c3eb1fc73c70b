//! An agent as the configuration and the options describe it, with everything around it.

use plaincall_agent::mcp::McpServers;
use plaincall_agent::{Agent, AgentError, AgentErrorKind};

use crate::arguments::Color;
use crate::config::parts::{Equipment, Ready};
use crate::config::{AgentOptions, Configuration};
use crate::environment::Environment;
use crate::run::approval::Approval;
use crate::status::{Failure, Status};
use crate::talk::stage::{Shown, Stage};

/// The agent, where its answers go, and what ends with it.
pub(crate) struct Built {
    pub(crate) agent: Agent,
    pub(crate) stage: Stage,
    /// What the model is called.
    pub(crate) model: String,
    pub(crate) servers: Option<McpServers>,
}

/// Builds it.
///
/// # Errors
/// What of the configuration cannot be.
pub(crate) async fn build(
    options: &AgentOptions,
    shown: Shown,
    color: Color,
    configuration: &Configuration,
    environment: &Environment,
) -> Result<Built, Failure> {
    let Ready {
        name,
        model,
        dialect,
        is_keyed,
    } = ready(None, options, configuration, environment)?;
    let system = configuration.system()?;
    let Equipment {
        toolbox,
        rules,
        policy,
        servers,
    } = configuration.equipment(environment).await?;
    let stage = Stage::new(shown, !toolbox.is_empty(), color, environment)?;
    let gate = Approval::of_talk(
        options.yes,
        rules.clone(),
        toolbox.clone(),
        stage.desk.clone(),
    );
    let mut builder = Agent::builder(model)
        .tools(toolbox)
        .dialect(dialect)
        .system(system)
        .rules(rules)
        .gate(gate)
        .policy(policy)
        .limits(configuration.limits())
        .directory_in(environment.temporary_directory())
        .environment(environment.clone().into_variables());
    if is_keyed {
        builder = builder.keyed();
    }
    let agent = builder.build().map_err(|error| failure(&error))?;
    Ok(Built {
        agent,
        stage,
        model: name,
        servers,
    })
}

/// The model of this name, or the one that is asked if none is named, ready to be asked.
///
/// # Errors
/// There is none, or it cannot be asked.
pub(crate) fn ready(
    name: Option<&str>,
    options: &AgentOptions,
    configuration: &Configuration,
    environment: &Environment,
) -> Result<Ready, Failure> {
    let mut chosen = configuration.chosen(name)?;
    options.dialect(&mut chosen.entry)?;
    configuration.model(&chosen, environment)
}

/// What keeps an agent from being built.
pub(crate) fn failure(error: &AgentError) -> Failure {
    let message = error.to_string();
    match &error.kind {
        AgentErrorKind::Dialect(_) => Failure::Configuration(message),
        _ => Failure::Broken(message),
    }
}

/// How a command ends whose question has no answer.
pub(crate) fn status(kind: &AgentErrorKind) -> Status {
    match kind {
        AgentErrorKind::Time => Status::TimedOut,
        AgentErrorKind::Cancelled => Status::Interrupted(130),
        _ => Status::Wrong,
    }
}
