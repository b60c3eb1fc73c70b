//! An attempt of a model at a task with an arm.

use std::sync::Arc;
use std::time::Duration;

use plaincall::Toolbox;
use plaincall_agent::model::Model;
use plaincall_agent::{Agent, AgentErrorKind, AgentLimits, ModelError, ModelErrorKind, Progress};
use serde::{Deserialize, Serialize};
use tokio::time::Instant;

use crate::arm::{Arm, Form};
use crate::conversation::{self, Counts, Ended};
use crate::handbook;
use crate::judge::judge;
use crate::observed::{Observed, Requested, Shared};
use crate::task::{Task, examples};
use crate::world::World;

/// The limits of every attempt.
pub(crate) const REPLIES: u32 = 12;
pub(crate) const CALLS: u32 = 40;
pub(crate) const REPAIRS: u32 = 3;
pub(crate) const SAME_FAILURE: u32 = 3;

/// The beginning of reasoning that the server does not separate.
pub(crate) const THINK: &str = "<think>";
/// The reason of an attempt that exceeded its time.
pub const TIMED_OUT: &str = "timed out";

/// The result of an attempt.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Attempt {
    /// The name of the [`Arm`].
    pub arm: String,
    /// The name of the [`Task`].
    pub task: String,
    /// The repetition, from 1.
    pub repetition: u32,
    /// Whether the world has changed exactly as requested, and the answer is right.
    pub is_correct: bool,
    /// The reason of a failure.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// The number of calls that the model wrote.
    pub calls: u32,
    /// The number of calls that could be parsed and whose arguments were valid.
    pub well_formed: u32,
    /// The number of calls that a tool executed without an error.
    pub succeeded: u32,
    /// The number of calls rejected only because they have no end marker.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclosed: u32,
    /// The number of replies.
    pub replies: u32,
    /// The tokens that the model read, in all replies.
    pub input_tokens: u64,
    /// The tokens that it wrote.
    pub output_tokens: u64,
    /// Whether tokens are estimated, because the server does not report them.
    pub is_estimated: bool,
    /// How long it took, in milliseconds.
    pub milliseconds: u64,
    /// Whether the server failed, so that the attempt shows nothing about the model.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_server_failure: bool,
    /// The text.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transcript: Vec<Entry>,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
const fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// A part of a transcript.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Entry {
    /// The author.
    pub author: Author,
    /// The text.
    pub text: String,
}

/// The author of a part of a transcript.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Author {
    /// The system prompt.
    System,
    /// The question, results and repair messages.
    Program,
    /// The text of the model.
    Model,
    /// The reasoning of the model, if the server separates it.
    Reasoning,
    /// A call that the server parsed.
    NativeCall,
    /// An error of the server.
    Error,
}

impl Entry {
    pub(crate) fn new(author: Author, text: &str) -> Self {
        Self {
            author,
            text: text.to_owned(),
        }
    }
}

impl Attempt {
    /// Returns the number of rejected calls of a correct attempt: the model repaired them.
    pub fn repaired(&self) -> u32 {
        if self.is_correct {
            self.calls.saturating_sub(self.well_formed)
        } else {
            0
        }
    }

    /// Returns whether the model reasoned before a reply.
    pub(crate) fn has_reasoning(&self) -> bool {
        self.transcript.iter().any(|entry| match entry.author {
            Author::Reasoning => true,
            Author::Model => entry.text.trim_start().starts_with(THINK),
            _ => false,
        })
    }
}

/// Runs an attempt. Also returns the error of the server, if there was one.
pub(crate) async fn run(
    model: Arc<dyn Model>,
    arm: Arm,
    task: Task,
    repetition: u32,
    request: Requested,
    time: Duration,
) -> (Attempt, Option<ModelError>) {
    let world = World::new(task);
    let observed = Observed::new(model, &arm, request, Arc::clone(&world));
    let begun = Instant::now();
    let played = play(arm, &world, Shared(Arc::clone(&observed)), time);
    let (counts, ended) = match tokio::time::timeout(time, played).await {
        Ok(played) => played,
        Err(_) => (Counts::default(), Err(Ended::Failed(TIMED_OUT.to_owned()))),
    };
    let took = begun.elapsed().as_millis();
    let mut attempt = Attempt {
        arm: arm.name.to_owned(),
        task: world.task.name.clone(),
        repetition,
        calls: counts.calls,
        well_formed: counts.well_formed,
        succeeded: counts.succeeded,
        unclosed: counts.unclosed,
        replies: counts.replies,
        input_tokens: counts.usage.input,
        output_tokens: counts.usage.output,
        is_estimated: counts.is_estimated,
        milliseconds: u64::try_from(took).unwrap_or(u64::MAX),
        transcript: observed.transcript(),
        ..Attempt::default()
    };
    let (why, error) = match ended {
        Ok(answer) => (judge(&world.task, &world.scene(), &answer).err(), None),
        Err(Ended::Failed(why)) => (Some(why), None),
        Err(Ended::Server(error)) => (Some(error.to_string()), Some(error)),
    };
    // A server that fails on the calls of the model shows what its tool calls are worth.
    let is_ours = |error: &ModelError| {
        use ModelErrorKind::{Broken, Busy, Refused, TooLong};
        matches!(error.kind, TooLong)
            || arm.is_native() && counts.replies > 0 && matches!(error.kind, Refused)
            || arm.is_native() && matches!(error.kind, Broken | Busy)
    };
    attempt.is_server_failure = error.as_ref().is_some_and(|error| !is_ours(error));
    attempt.is_correct = why.is_none();
    attempt.why = why;
    (attempt, error)
}

async fn play(
    arm: Arm,
    world: &Arc<World>,
    model: Shared,
    time: Duration,
) -> (Counts, Result<String, Ended>) {
    let tools = match Toolbox::new(World::tools(world)) {
        Ok(tools) => tools,
        Err(error) => return (Counts::default(), Err(Ended::Failed(error.to_string()))),
    };
    match arm.form {
        Form::Native | Form::Json => conversation::play(model, world, tools, arm).await,
        Form::Block { .. } | Form::Emoji { .. } => agent(arm, world, model, tools, time).await,
    }
}

/// Plaincall's own arms: its agent.
async fn agent(
    arm: Arm,
    world: &World,
    model: Shared,
    tools: Toolbox,
    time: Duration,
) -> (Counts, Result<String, Ended>) {
    let mut limits = AgentLimits::default();
    limits.turns = REPLIES;
    limits.calls = CALLS;
    limits.time = time;
    limits.repairs = REPAIRS;
    limits.same_failure = SAME_FAILURE;
    let shown = if arm.has_examples() {
        world.task.few_shot()
    } else {
        0
    };
    let built = Agent::builder(model)
        .tools(tools)
        .few_shot(examples().to_vec(), shown)
        .dialect(arm.dialect().unwrap_or_default())
        .system(handbook::system(world.task.is_agent_sized))
        .limits(limits)
        .allow_all()
        .build();
    let answer = match built {
        Ok(agent) => agent.ask(&world.task.question).await,
        Err(error) => Err(error),
    };
    match answer {
        Ok(answer) => (counts(&answer.progress), Ok(answer.text)),
        Err(error) => {
            let counts = counts(&error.progress);
            let ended = match error.kind {
                AgentErrorKind::Model(error) => Ended::Server(error),
                _ => Ended::Failed(error.to_string()),
            };
            (counts, Err(ended))
        }
    }
}

fn counts(progress: &Progress) -> Counts {
    let calls = progress.calls.total();
    Counts {
        replies: progress.turns,
        calls,
        well_formed: calls.saturating_sub(progress.calls.rejected),
        succeeded: progress.calls.ok,
        unclosed: progress.unclosed,
        usage: progress.usage,
        is_estimated: progress.is_usage_estimated,
    }
}
