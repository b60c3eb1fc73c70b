//! Building of a conversation from the configuration and the options.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plaincall::Policy;
use plaincall_agent::mcp::McpServers;
use plaincall_agent::{Agent, AgentError, AgentErrorKind, AgentLimits, Conversation};
use plaincall_config::{Origin, child, matches};
use plaincall_grammar::GrammarError;

use crate::commands::conversation::subagents::{Shared, Subagents};
use crate::environment::Environment;
use crate::history::History;
use crate::options::{AgentOptions, Color, SessionOptions};
use crate::session::{Note, Session};
use crate::settings::{Chosen, Configuration, Ready, ToolSetup};
use crate::status::{Failure, Status, print_note, report_directory};
use crate::terminal::approval::Approval;
use crate::terminal::displays::{Content, Displays};
use crate::terminal::human;
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::user::TerminalUser;

/// The settings of a conversation.
pub(crate) struct Setup<'w> {
    pub(crate) agent: &'w AgentOptions,
    pub(crate) session: &'w SessionOptions,
    /// Whether to print events as JSON instead of answers.
    pub(crate) is_record: bool,
    pub(crate) is_verbose: bool,
    /// Whether the answer must match a schema.
    pub(crate) has_schema: bool,
    pub(crate) color: Color,
}

impl Setup<'_> {
    fn content(&self, has_tools: bool) -> Content {
        Content::Answers {
            is_record: self.is_record,
            is_verbose: self.is_verbose,
            has_tools,
            has_schema: self.has_schema,
        }
    }
}

/// A conversation with its displays and MCP servers.
pub(crate) struct Built {
    pub(crate) conversation: Conversation,
    pub(crate) displays: Displays,
    /// The name of the model.
    pub(crate) model: String,
    pub(crate) servers: Vec<McpServers>,
    /// The name of the session, if the conversation is saved.
    pub(crate) session: Option<String>,
}

/// Builds a conversation, unless a signal arrives first. Without an agent in the options, the configuration gets the values
/// of the session's agent. The returned `Interrupts` receive all later signals.
pub(crate) async fn build(
    setup: &Setup<'_>,
    configuration: &mut Configuration,
    environment: &Environment,
) -> Result<Result<(Built, Interrupts), Interrupt>, Failure> {
    if let Some(warning) = configuration.warning() {
        print_note(&warning);
    }
    let mut interrupts = Interrupts::new()?;
    // A new session is created only if its model can be used.
    let check = || {
        let chosen = chosen(None, None, setup.agent, configuration)?;
        chosen.ready(environment).map(drop)
    };
    let session = Session::open(setup.session, configuration, check)?;
    let note = session.as_ref().and_then(|session| session.note.as_ref());
    if setup.agent.agent.is_none()
        && let Some(agent) = note.and_then(|note| note.agent.as_deref())
    {
        configuration.use_agent_of_session(agent)?;
    }
    let configuration = &*configuration;
    tokio::select! {
        built = build_with(setup, configuration, environment, session) => {
            Ok(Ok((built?, interrupts)))
        }
        interrupt = interrupts.next() => Ok(Err(interrupt)),
    }
}

async fn build_with(
    setup: &Setup<'_>,
    configuration: &Configuration,
    environment: &Environment,
    session: Option<Session>,
) -> Result<Built, Failure> {
    let options = setup.agent;
    let session_name = session.as_ref().map(|session| session.name.clone());
    let session_note = session.as_ref().and_then(|session| session.note.as_ref());
    let is_resumed = session_note.is_some();
    let chosen = chosen(None, session_note, options, configuration)?;
    let note = Note::new(configuration.agent(), &chosen.name, &chosen.entry);
    let Ready {
        name,
        model,
        dialect,
        is_keyed,
        ..
    } = chosen.ready(environment)?;
    let system = configuration.system()?;
    let user = TerminalUser::at_terminal();
    let mut subagents = Subagents::of(configuration)?;
    let ToolSetup {
        toolbox,
        all,
        subagents: toolboxes,
        rules,
        policy,
        servers,
    } = configuration
        .tool_setup(&subagents.configurations, environment, user.clone())
        .await?;
    let policy = policy_of(policy, &chosen, session.as_ref());
    let has_tools = !(toolbox.is_empty() && subagents.names.is_empty());
    let displays = Displays::new(
        setup.content(has_tools),
        Instant::now(),
        setup.color,
        environment,
    )?;
    displays.prompter.open();
    if let Some(user) = &user {
        user.set_prompter(&displays.prompter);
    }
    let gate = Approval::new(
        options.yes,
        rules.clone(),
        all,
        session
            .as_ref()
            .map_or(&History::default(), |session| &session.history),
        BTreeMap::new(),
        Arc::clone(&displays.prompter),
    );
    let shared = Shared {
        model: (Arc::clone(&model), &chosen.entry),
        dialect: &dialect,
        policy,
        user: user.as_ref(),
        environment,
    };
    subagents.build(toolboxes, &shared).await?;
    let mut builder = Agent::builder(model)
        .tools(toolbox)
        .dialect(dialect.clone())
        .system(system)
        .rules(rules)
        .gate(gate.clone())
        .policy(policy)
        .limits(configuration.limits(&chosen.entry))
        .on_no_tool_call(configuration.without_call())
        .directory_in(environment.temporary_directory())
        .environment(environment.clone().into_variables());
    builder = builder.few_shot(chosen.entry.examples.clone(), chosen.entry.few_shot());
    if let Some(user) = user {
        builder = builder.user(user);
    }
    if is_keyed {
        builder = builder.keyed();
    }
    let agent = subagents.with(builder, configuration).build();
    let agent = agent.map_err(|error| not_built(&error, &chosen.name, configuration))?;
    report(&agent).await?;
    let conversation = match session {
        None => agent.conversation(),
        Some(session) => {
            let note = session.note.unwrap_or(note);
            agent.session(session.log, note.to_json()).await
        }
    };
    let conversation = conversation.map_err(|error| failure(&error))?;
    if is_resumed {
        report_directory(&conversation.directories());
    }
    report_gone_tools(&conversation);
    gate.set_directories(conversation.directories());
    Ok(Built {
        conversation,
        displays,
        model: name,
        servers,
        session: session_name,
    })
}

fn report_gone_tools(conversation: &Conversation) {
    let gone = conversation.gone_tools().join(", ");
    if !gone.is_empty() {
        print_note(&format!(
            "the session continues without these tools, which no longer exist: {gone}"
        ));
    }
}

/// Reports the examples that the prompt of an agent does not contain, and that its replies have no grammar.
pub(super) async fn report(agent: &Agent) -> Result<(), Failure> {
    for skipped in agent.skipped_examples() {
        print_note(&skipped);
    }
    report_grammar(agent.check_grammar().await)
}

/// Reports why replies have no grammar.
pub(crate) fn report_grammar(
    checked: Result<Option<GrammarError>, AgentError>,
) -> Result<(), Failure> {
    if let Some(error) = checked.map_err(|error| Failure::Configuration(error.to_string()))? {
        print_note(&format!("replies are not constrained: {error}"));
    }
    Ok(())
}

/// Returns the policy for a model. A session keeps its policy.
fn policy_of(mut policy: Policy, chosen: &Chosen, session: Option<&Session>) -> Policy {
    policy.unclosed = chosen.entry.unclosed.unwrap_or(policy.unclosed);
    let begin = session.and_then(|session| session.history.begin());
    begin.map_or(policy, |begin| begin.policy)
}

/// Returns the model called `name`, or the model that the options, the session or the configuration select.
pub(crate) fn chosen(
    name: Option<&str>,
    session_note: Option<&Note>,
    options: &AgentOptions,
    configuration: &Configuration,
) -> Result<Chosen, Failure> {
    let origin = configuration.origin("/model");
    // A session that continues with its own agent keeps its model.
    let is_explicit = matches!(origin, Origin::Variable(_) | Origin::Option(_))
        || options.agent.is_some() && configuration.own_model().is_some();
    let session_model = session_note
        .map(|note| note.model.as_str())
        .filter(|_| !is_explicit);
    let mut chosen = match (name, &options.url) {
        (None, Some(url)) => Chosen::from_options(url, options.model.as_deref()),
        _ => configuration.chosen(name.or(session_model))?,
    };
    if let Some(dialect) = &options.dialect {
        chosen.entry = dialect.apply_to(&chosen.entry)?;
    }
    if let Some(session_note) = session_note {
        chosen.entry = session_note.taught(chosen.entry);
    } else {
        chosen.entry = chosen.measured();
    }
    Ok(chosen)
}

/// Converts an error of building an agent with this model. An invalid example is shown at its line.
pub(super) fn not_built(error: &AgentError, model: &str, configuration: &Configuration) -> Failure {
    let AgentErrorKind::Example(invalid) = &error.kind else {
        return failure(error);
    };
    let place = format!("/examples/{}/{}", invalid.index, invalid.field);
    let origins = configuration
        .model_names()
        .filter(|name| matches(name, model));
    let origins = origins.map(|name| configuration.origin(&(child("/models", name) + &place)));
    let mut origins = origins.filter(|origin| **origin != Origin::Default);
    Failure::Configuration(match origins.next() {
        Some(origin) => format!("{origin}: {error}"),
        None => format!("the model `{model}`: {error}"),
    })
}

/// Converts an error of building an agent.
pub(crate) fn failure(error: &AgentError) -> Failure {
    let message = error.to_string();
    match &error.kind {
        AgentErrorKind::Dialect(_) => Failure::Configuration(message),
        _ => Failure::Runtime(message),
    }
}

/// Returns the `kind` of an error in JSON output.
pub(crate) fn kind(kind: &AgentErrorKind) -> &'static str {
    match kind {
        AgentErrorKind::Model(_) => "model",
        AgentErrorKind::Run(_) => "run",
        AgentErrorKind::Dialect(_) => "dialect",
        AgentErrorKind::Log(_) => "log",
        AgentErrorKind::Random => "random",
        AgentErrorKind::Cancelled => "cancelled",
        AgentErrorKind::Time => "time",
        AgentErrorKind::Turns => "turns",
        AgentErrorKind::Calls => "calls",
        AgentErrorKind::Tokens => "tokens",
        AgentErrorKind::Length => "length",
        AgentErrorKind::Repairs => "repairs",
        AgentErrorKind::SameFailure { .. } => "same_failure",
        AgentErrorKind::SameResult { .. } => "same_result",
        AgentErrorKind::Empty => "empty",
        AgentErrorKind::TooLong => "too_long",
        AgentErrorKind::Ended(_) => "ended",
        AgentErrorKind::Schema(_) => "schema",
        AgentErrorKind::Settings(_) | AgentErrorKind::Example(_) => "settings",
        AgentErrorKind::User(_) => "user",
        _ => "other",
    }
}

/// The advice for a reply that reached its length limit.
pub(crate) const LONGER: &str = "set `max_tokens` in the `[models.NAME]` table of the configuration to a higher value; reasoning counts too";

/// Returns the error message, with the setting that can help.
pub(crate) fn explained(error: &AgentError, configuration: &Configuration) -> String {
    match &error.kind {
        AgentErrorKind::Time => {
            let limit = configuration.settings.limits.time;
            let time = human::time(limit.map_or(AgentLimits::default().time, |time| time.0));
            let name = match configuration.origin("/limits/time") {
                Origin::Option(_) => "`--timeout`",
                _ => "`limits.time` in the configuration, or `--timeout`",
            };
            format!("timed out after {time} ({name})")
        }
        AgentErrorKind::Length => format!("{error}: {LONGER}"),
        AgentErrorKind::TooLong => format!(
            "{error}; set `limits.context` in the configuration to the context length of the model"
        ),
        _ => error.to_string(),
    }
}

/// Returns the exit status for a question without an answer.
pub(crate) fn status(kind: &AgentErrorKind) -> Status {
    match kind {
        AgentErrorKind::Time => Status::TimedOut,
        AgentErrorKind::Cancelled => Status::Interrupted(130),
        _ => Status::Failed,
    }
}
