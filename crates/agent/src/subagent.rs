//! Agents that are tools of other agents (`spec/agent.md` 8).
//!
//! A subagent has a conversation of its own. Its calls are submitted to the run of the conversation that the user sees, so
//! that gate, rules, limits and log apply to all calls alike.

mod past;
mod recorded_model;
pub(crate) mod submissions;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::future::ready;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plaincall::events::{HeldReason, ToolBegin};
use plaincall::gate::GateFuture;
use plaincall::policy::Retry;
use plaincall::tool::Failure;
use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{
    BoxError, CallResult, Context, Decision, Dialect, Effect, Gate, ReadOnly, Request, RunEvent,
    Status, Submitted, Tool, Toolbox,
};
use tokio::select;
use tokio::sync::{mpsc, oneshot};

use crate::agent_run::AgentStream;
use crate::answer::{AgentError, AgentErrorKind};
use crate::budget::Budget;
use crate::conversation::Conversation;
use crate::model::Retrying;
use crate::session::settings;
use crate::settings::{Settings, Subagent};
use crate::subagent::recorded_model::RecordedModel;
use crate::subagent::submissions::{Family, Message, Submission, Submissions, lock};
use crate::text::end_line;

/// How many agents may be nested: an agent, its subagents, and theirs.
const DEEPEST: usize = 4;
/// The parameter of a subagent.
const TASK: &str = "task";
/// The tool that reads the results of its own conversation.
const READ_RESULT: &str = "read_result";
/// How long a cancelled subagent may take to end its turn, so that what it used is counted.
const GRACE: Duration = Duration::from_secs(2);
/// A note about calls of tools that are gone: their results do not fit any tool.
const RAN: &str = "\nEarlier calls of them that are rejected as unknown may have run.\n";
/// The timeout of calls in a subagent's conversation. The run in which they really run has the real timeouts.
const NO_TIMEOUT: Duration = Duration::from_hours(24 * 365);

/// A subagent's connection to the conversation.
#[derive(Clone)]
struct Link {
    family: Arc<Family>,
    sender: mpsc::Sender<Message>,
    dialect: Dialect,
    gate: Arc<dyn Gate>,
}

/// The gate of a subagent's conversation. Only here it is known that a call may have been meant to end earlier, or is that of an example,
/// so the real gate decides about that here. About everything else it decides in the real run, which also finds echoes.
struct SuspectsOnly(Arc<dyn Gate>);

impl Gate for SuspectsOnly {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        match &request.held {
            Some(HeldReason::EndMarker(_) | HeldReason::Example) => self.0.decide(request),
            _ => Box::pin(ready(Ok(Decision::Allow))),
        }
    }
}

/// Creates the tool of a subagent, which [`bound`] replaces for each conversation.
pub(crate) fn tool(own: &Subagent, description: &str) -> Tool {
    let tools = own.settings.tools.iter().map(|tool| tool.spec().effect);
    let effect = tools.max_by_key(|effect| match effect {
        Effect::Read => 0,
        Effect::Idempotent => 1,
        Effect::Write => 2,
    });
    let task = Parameter::new(TASK, ParameterKind::String);
    let spec = ToolSpec::new(&*own.name)
        .describe(description)
        .parameter(task.describe("The whole task. The agent sees nothing else."))
        .body(TASK)
        .effect(effect.unwrap_or(Effect::Read));
    let tool = Tool::raw(spec, |_, _| async {
        Err("a subagent runs only in the conversation of an agent".into())
    });
    let time = own.settings.limits.time;
    let tool = tool.timeout(time.saturating_mul(2)).grace(GRACE);
    tool.delegates()
}

/// Returns the number of agents below these settings, to the deepest.
fn depth(settings: &Settings) -> usize {
    let below = settings.subagents.iter();
    below
        .map(|own| 1 + depth(&own.settings))
        .max()
        .unwrap_or_default()
}

/// Adds the tools of the subagents, which only they can call.
///
/// # Errors
/// Returns an error if agents are nested too deeply, or if different tools have the same name.
pub(crate) fn add_tools(settings: &mut Settings) -> Result<(), AgentErrorKind> {
    if depth(settings) >= DEEPEST {
        let problem = format!("agents are nested more than {DEEPEST} deep");
        return Err(AgentErrorKind::Settings(problem));
    }
    let mut all = settings.tools.clone();
    for own in settings.subagents.clone() {
        for tool in own.settings.run_tools.iter() {
            let name = tool.name();
            // It reads results of the subagent's own conversation.
            if name == READ_RESULT {
                continue;
            }
            let Some(other) = all.get(name) else {
                let added = all.add(tool.clone().submitted_only());
                added.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
                continue;
            };
            let agents = [settings.agent(name), own.settings.agent(name)];
            let is_same = match agents {
                [Some(one), Some(other)] => Arc::ptr_eq(one, other),
                [None, None] => tool.is_same(other),
                _ => false,
            };
            if !is_same {
                let agent = &own.name;
                let problem = format!(
                    "the tool `{name}` of the agent `{agent}` differs from that of another agent; give both the same tool, or rename or remove one of them"
                );
                return Err(AgentErrorKind::Settings(problem));
            }
        }
    }
    settings.run_tools = all;
    Ok(())
}

/// Returns the tools of a conversation's run, with subagents that are connected to it. After an interrupted turn, they keep the
/// settings that the log has: their effects and timeouts follow from their own tools and limits, which may have changed.
///
/// # Errors
/// Returns an error if a tool is invalid, which [`add_tools`] has checked.
pub(crate) fn bound(
    settings: &Arc<Settings>,
    dialect: &Dialect,
    past: &[RunEvent],
) -> Result<(Toolbox, Option<Submissions>), AgentErrorKind> {
    if settings.subagents.is_empty() {
        return Ok((settings.run_tools.clone(), None));
    }
    let (submissions, family, sender) = Submissions::new();
    let link = Link {
        family,
        sender,
        dialect: dialect.clone(),
        gate: settings.gate.clone().unwrap_or_else(|| Arc::new(ReadOnly)),
    };
    let interrupted = interrupted(past);
    let tools = settings.run_tools.iter().map(|tool| {
        let Some(agent) = settings.agent(tool.name()).cloned() else {
            return tool.clone();
        };
        let link = link.clone();
        let tool = match interrupted.and_then(|tools| tools.get(tool.name())) {
            Some(begun) => {
                let tool = tool.clone().effect(begun.effect);
                tool.timeout(begun.policy.timeout)
            }
            None => tool.clone(),
        };
        tool.with_code_of(move |arguments, context| {
            let (agent, link) = (agent.clone(), link.clone());
            let task = arguments.get(TASK).unwrap_or_default().to_owned();
            async move { link.run(&agent, &task, &context).await }
        })
    });
    let tools = Toolbox::new(tools);
    let tools = tools.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
    Ok((tools, Some(submissions)))
}

/// Returns the settings of all tools in a log whose last turn has not ended.
fn interrupted(past: &[RunEvent]) -> Option<&BTreeMap<String, ToolBegin>> {
    let last = past.iter().rev().find_map(|event| match event {
        RunEvent::Turn(_) => Some(true),
        RunEvent::TurnEnd(_) => Some(false),
        _ => None,
    });
    let settings = past.iter().rev().find_map(settings);
    settings.filter(|_| last == Some(true))
}

impl Link {
    /// Gives a subagent its task.
    async fn run(
        &self,
        settings: &Arc<Settings>,
        task: &str,
        context: &Context,
    ) -> Result<String, BoxError> {
        let parent = self.family.budget_of(context.call()).await;
        let budget = Budget::timed(settings.limits, Some(parent));
        let own = self.conversation(settings, context.call(), budget)?;
        let asking = AgentStream::alone(own, task.to_owned());
        let stop = asking.cancellation();
        let mut answer = pin!(asking.answer());
        let answer = select! {
            biased;
            answer = &mut answer => answer,
            () = context.cancellation().cancelled() => {
                stop.cancel();
                answer.await
            }
        };
        match answer {
            Ok(answer) => Ok(answer.text),
            Err(error) => {
                let text = Some(&error.partial_text).filter(|text| !text.trim().is_empty());
                Err(Box::new(Failure::new(error.to_string(), text.cloned())))
            }
        }
    }

    /// Starts the conversation of a subagent that the call `parent` runs.
    fn conversation(
        &self,
        settings: &Arc<Settings>,
        parent: u32,
        budget: Arc<Budget>,
    ) -> Result<Conversation, AgentError> {
        let tools = settings.tools.iter().map(|tool| {
            if tool.name() == READ_RESULT {
                return tool.clone();
            }
            let (link, budget) = (self.clone(), Arc::clone(&budget));
            let name = tool.name().to_owned();
            let proxy = tool.clone().with_code_of(move |arguments, _| {
                let texts = arguments.iter();
                let texts = texts.map(|one| (one.pointer.to_owned(), one.text.to_owned()));
                let arguments: Vec<(String, String)> = texts.collect();
                let (reply, submitted) = oneshot::channel();
                let submission = Submission {
                    parent,
                    name: name.clone(),
                    arguments: arguments.into(),
                    budget: Arc::clone(&budget),
                    reply,
                };
                let link = link.clone();
                async move { link.submit(submission, submitted).await }
            });
            let proxy = proxy.timeout(NO_TIMEOUT).grace(Duration::ZERO);
            match tool.policy().retry {
                Some(_) => proxy.retry(Retry::attempts(1)),
                None => proxy,
            }
        });
        let tools = Toolbox::new(tools);
        let tools = tools.map_err(|error| AgentErrorKind::Settings(error.to_string()))?;
        let mut policy = settings.policy;
        policy.concurrent = 0;
        policy.turn_timeout = None;
        let run = (settings.run(tools))
            .policy(policy)
            .gate(SuspectsOnly(Arc::clone(&self.gate)))
            .dialect(self.dialect.clone())
            .build()?;
        let system = settings.system_message(&self.dialect)?;
        let dialect = self.dialect.clone();
        let mut talk = Conversation::new(Arc::clone(settings), run, dialect, system);
        talk.budget = Some(budget);
        if let Some(past) = lock(&self.family.state).past.get(&parent) {
            let names: BTreeSet<&str> = past.names().collect();
            let is_gone = |name: &&str| settings.tools.get(name).is_none();
            let mut gone = names.into_iter().filter(is_gone).peekable();
            if gone.peek().is_some() {
                talk.after_turn = talk.gone_message(gone, RAN);
            }
        }
        let model = RecordedModel::new(
            Arc::clone(&settings.model),
            &self.family,
            self.sender.clone(),
            parent,
        );
        talk.model = Retrying::new(Arc::new(model), settings.retries);
        Ok(talk)
    }

    async fn submit(
        &self,
        submission: Submission,
        submitted: oneshot::Receiver<Submitted>,
    ) -> Result<String, BoxError> {
        while let Some(past) = self.family.take_past(&submission) {
            let result = past.await;
            // What the crash cancelled is submitted again.
            if result.status != Status::Cancelled {
                return outcome(&result);
            }
        }
        let ended = "the conversation has ended";
        let message = Message::Call(submission);
        self.sender.send(message).await.map_err(|_| ended)?;
        let call = submitted.await.map_err(|_| ended)?;
        outcome(&call.await)
    }
}

/// Returns the result of a submitted call as the result of a tool.
fn outcome(result: &CallResult) -> Result<String, BoxError> {
    let mut output = result.output.as_deref().map(str::to_owned);
    if let Some(note) = &result.note {
        let text = output.get_or_insert_default();
        end_line(text);
        let _ = writeln!(text, "[{note}]");
    }
    if result.status == Status::Ok {
        return Ok(output.unwrap_or_default());
    }
    let message = match &result.error {
        Some(error) => error.to_string(),
        None => format!("it ended as {}", result.status),
    };
    Err(Box::new(Failure::new(message, output)))
}
