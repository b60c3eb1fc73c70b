//! An agent as the configuration and the options describe it, with everything around it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use plaincall_agent::mcp::McpServers;
use plaincall_agent::{Agent, AgentError, AgentErrorKind, AgentLimits, Conversation};
use plaincall_config::Origin;

use crate::environment::Environment;
use crate::history::History;
use crate::options::{AgentOptions, Color, SessionOptions};
use crate::session::{Note, Session};
use crate::settings::{Chosen, Configuration, Ready, ToolSetup};
use crate::status::{Failure, Status, remark, report_directory};
use crate::terminal::approval::Approval;
use crate::terminal::displays::{Content, Displays};
use crate::terminal::interrupts::{Interrupt, Interrupts};
use crate::terminal::user::TerminalUser;
use crate::terminal::words;

/// What a command asks for that talks with the agent.
pub(crate) struct Wanted<'w> {
    pub(crate) agent: &'w AgentOptions,
    pub(crate) session: &'w SessionOptions,
    /// Whether the record is printed in the place of answers.
    pub(crate) is_record: bool,
    pub(crate) is_verbose: bool,
    pub(crate) color: Color,
}

/// A conversation with the agent, where its answers go, and what ends with it.
pub(crate) struct Built {
    pub(crate) conversation: Conversation,
    pub(crate) displays: Displays,
    /// What the model is called.
    pub(crate) model: String,
    pub(crate) servers: Option<McpServers>,
    /// Whether it is a session.
    pub(crate) is_kept: bool,
}

/// Builds it, unless a signal comes first. What it is built with can be interrupted from now on.
pub(crate) async fn build(
    wanted: &Wanted<'_>,
    configuration: &Configuration,
    environment: &Environment,
) -> Result<Result<(Built, Interrupts), Interrupt>, Failure> {
    if let Some(warning) = configuration.warning() {
        remark(&warning);
    }
    let mut interrupts = Interrupts::new()?;
    let session = Session::open(wanted.session, configuration)?;
    tokio::select! {
        built = build_with(wanted, configuration, environment, session) => {
            Ok(Ok((built?, interrupts)))
        }
        interrupt = interrupts.next() => Ok(Err(interrupt)),
    }
}

async fn build_with(
    wanted: &Wanted<'_>,
    configuration: &Configuration,
    environment: &Environment,
    session: Option<Session>,
) -> Result<Built, Failure> {
    let options = wanted.agent;
    let is_kept = session.is_some();
    let past = session.as_ref().and_then(|session| session.note.as_ref());
    let chosen = chosen(None, past, options, configuration)?;
    let note = Note::new(&chosen.name, &chosen.entry);
    let Ready {
        name,
        model,
        dialect,
        is_keyed,
    } = chosen.ready(environment)?;
    let system = configuration.system()?;
    let person = TerminalUser::at_terminal();
    let ToolSetup {
        toolbox,
        rules,
        mut policy,
        servers,
    } = configuration
        .tool_setup(environment, person.clone())
        .await?;
    if let Some(unclosed) = chosen.entry.unclosed {
        policy.unclosed = unclosed;
    }
    // A session keeps its dialect.
    if let Some(begin) = session.as_ref().and_then(|session| session.past.begin()) {
        policy = begin.policy;
    }
    let content = Content::Answers {
        is_record: wanted.is_record,
        is_verbose: wanted.is_verbose,
        has_tools: !toolbox.is_empty(),
    };
    let displays = Displays::new(content, Instant::now(), wanted.color, environment)?;
    displays.prompter.open();
    if let Some(person) = &person {
        person.set_prompter(&displays.prompter);
    }
    let gate = Approval::new(
        options.yes,
        rules.clone(),
        toolbox.clone(),
        session
            .as_ref()
            .map_or(&History::default(), |session| &session.past),
        BTreeMap::new(),
        Arc::clone(&displays.prompter),
    );
    let mut builder = Agent::builder(model)
        .tools(toolbox)
        .dialect(dialect)
        .system(system)
        .rules(rules)
        .gate(gate.clone())
        .policy(policy)
        .limits(configuration.limits(&chosen.entry))
        .on_no_tool_call(configuration.without_call())
        .directory_in(environment.temporary_directory())
        .environment(environment.clone().into_variables());
    if let Some(person) = person {
        builder = builder.user(person);
    }
    if is_keyed {
        builder = builder.keyed();
    }
    let is_resumed = session
        .as_ref()
        .is_some_and(|session| session.past.begin().is_some());
    let agent = builder.build().map_err(|error| failure(&error))?;
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
    gate.set_directories(conversation.directories());
    Ok(Built {
        conversation,
        displays,
        model: name,
        servers,
        is_kept,
    })
}

/// The model of this name, or the one that the options, the session or the configuration name, and how it is taught.
pub(crate) fn chosen(
    name: Option<&str>,
    past: Option<&Note>,
    options: &AgentOptions,
    configuration: &Configuration,
) -> Result<Chosen, Failure> {
    let origin = configuration.origin("/model");
    let is_explicit = matches!(origin, Origin::Variable(_) | Origin::Option(_));
    let noted = past
        .map(|past| past.model.as_str())
        .filter(|_| !is_explicit);
    let mut chosen = match (name, &options.url) {
        (None, Some(url)) => Chosen::given(url, options.model.as_deref(), options.kind),
        _ => configuration.chosen(name.or(noted))?,
    };
    chosen.entry = options.teaching.over(&chosen.entry)?;
    if let Some(past) = past {
        chosen.entry = past.taught(chosen.entry);
    }
    Ok(chosen)
}

/// What keeps an agent from being built.
pub(crate) fn failure(error: &AgentError) -> Failure {
    let message = error.to_string();
    match &error.kind {
        AgentErrorKind::Dialect(_) => Failure::Configuration(message),
        _ => Failure::Broken(message),
    }
}

/// What the reason is called in the record.
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
        AgentErrorKind::Empty => "empty",
        AgentErrorKind::TooLong => "too_long",
        AgentErrorKind::Ended(_) => "ended",
        AgentErrorKind::Settings(_) => "settings",
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
            let time = words::time(limit.map_or(AgentLimits::default().time, |time| time.0));
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

/// How a command ends whose question has no answer.
pub(crate) fn status(kind: &AgentErrorKind) -> Status {
    match kind {
        AgentErrorKind::Time => Status::TimedOut,
        AgentErrorKind::Cancelled => Status::Interrupted(130),
        _ => Status::Wrong,
    }
}
