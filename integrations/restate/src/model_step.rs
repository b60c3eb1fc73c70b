//! The reply of a model, as one step of the journal.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plaincall::call::Document;
use plaincall::call::history::results;
use plaincall::durable::{DurableRun, DurableSettings};
use plaincall::events::Usage;
use plaincall::syntax::DialectError;
use plaincall::{CallResult, Dialect, Effect, RunEvent, Status, Stop, TurnResults};
use plaincall_agent::model::{ModelRequest, Piece, Reply as ModelReply, ReplyNext};
use plaincall_agent::{
    AgentErrorKind, AgentLimits, Message, Model, ModelError, ModelErrorKind, Role,
};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// The longest reply, in bytes. Restate accepts values of 32 MiB.
const LONGEST: usize = 16 << 20;

/// A whole reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeReply {
    pub(crate) text: String,
    pub(crate) stop: Stop,
    pub(crate) usage: Option<Usage>,
    /// When it ended, in milliseconds since 1970 (UTC).
    pub(crate) unix_ms: u64,
}

/// The reason why there is no reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Failed {
    Cancelled,
    /// The same request cannot succeed later.
    Refused(String),
    /// It may.
    Repeated(String),
}

/// Requests a reply and reads it to its end.
///
/// # Errors
/// Returns the reason why there is none.
pub(crate) async fn request(
    model: &dyn Model,
    request: ModelRequest,
    stop: CancellationToken,
) -> Result<WholeReply, Failed> {
    let reading = stop.run_until_cancelled(read(model.reply(request)));
    reading.await.unwrap_or(Err(Failed::Cancelled))
}

async fn read(mut reply: ModelReply) -> Result<WholeReply, Failed> {
    let (mut text, mut usage) = (String::new(), None);
    while let Some(next) = reply.next().await {
        match next.map_err(|error| classified(&error))? {
            ReplyNext::Piece(Piece::Text(part)) => text.push_str(&part),
            ReplyNext::Piece(Piece::Usage(so_far)) => usage = Some(so_far),
            ReplyNext::Piece(_) => {}
            ReplyNext::Finish(finish) => {
                let (stop, unix_ms) = (finish.stop, crate::worker::unix_ms());
                return Ok(WholeReply {
                    text,
                    stop,
                    usage,
                    unix_ms,
                });
            }
        }
        if text.len() > LONGEST {
            let problem = format!("the reply has more than {LONGEST} bytes");
            return Err(Failed::Refused(problem));
        }
    }
    let problem = "the reply of the model has no end";
    Err(Failed::Repeated(problem.to_owned()))
}

fn classified(error: &ModelError) -> Failed {
    match error.kind {
        ModelErrorKind::Refused | ModelErrorKind::TooLong => {
            Failed::Refused(format!("the model refused the request: {error}"))
        }
        _ => Failed::Repeated(error.to_string()),
    }
}

/// Returns the delay before a failed request is repeated, given the number of requests so far: eight times, over some three minutes.
pub(crate) fn delay(requests: u32) -> Option<Duration> {
    let seconds = 1 << requests.checked_sub(1)?.min(6);
    (requests < 9).then(|| Duration::from_secs(seconds.min(60)))
}

/// Checks a reply without a call, which is the answer.
///
/// # Errors
/// Returns an error if it is empty or truncated.
pub(crate) fn check_answer(reply: &WholeReply, text: &str) -> Result<(), AgentErrorKind> {
    if reply.stop == Stop::Length {
        Err(AgentErrorKind::Length)
    } else if text.trim().is_empty() {
        Err(AgentErrorKind::Empty)
    } else {
        Ok(())
    }
}

/// The calls of a question that failed: the number of replies, by tool and text.
#[derive(Default)]
pub(crate) struct Failures(BTreeMap<(String, String), u32>);

impl Failures {
    /// Counts the failed calls of a reply.
    ///
    /// # Errors
    /// Returns an error if a call failed as often as one of an agent may.
    pub(crate) fn count(
        &mut self,
        reply: &str,
        results: &TurnResults,
        settings: &DurableSettings,
    ) -> Result<(), AgentErrorKind> {
        let written = Document::parse(reply, settings.model_dialect());
        let written = written.map_err(AgentErrorKind::Dialect)?;
        let changes = |one: &CallResult| {
            let tool = settings.tools().get(&one.name);
            one.status == Status::Ok && tool.is_some_and(|tool| tool.spec().effect != Effect::Read)
        };
        // Earlier failures may succeed now.
        if results.iter().any(changes) {
            self.0.clear();
        }
        let both = results.iter().zip(written.calls());
        let failed = both.filter(|(one, _)| matches!(one.status, Status::Error | Status::Rejected));
        let failed = failed.map(|(one, call)| {
            let header = call.raw_args.as_deref().unwrap_or_default();
            (one.name.to_string(), [header, call.raw()].join("]"))
        });
        for call in failed.collect::<BTreeSet<_>>() {
            let name = call.0.as_str().into();
            let count = self.0.entry(call).or_default();
            *count += 1;
            if *count == AgentLimits::default().same_failure {
                return Err(AgentErrorKind::SameFailure { name });
            }
        }
        Ok(())
    }
}

/// Returns the messages of a conversation so far, from its record.
pub(crate) fn messages<'e>(
    system: &str,
    events: impl IntoIterator<Item = &'e RunEvent>,
    run: &DurableRun,
    dialect: &Dialect,
) -> Result<Vec<Message>, DialectError> {
    let mut messages = Vec::new();
    add(&mut messages, Role::System, system);
    let (mut reply, mut ended): (String, Vec<CallResult>) = Default::default();
    for event in events {
        match event {
            RunEvent::Message(message) => add(&mut messages, Role::User, &message.text),
            RunEvent::Turn(_) => reply.clear(),
            RunEvent::Text(part) => {
                reply.push_str(&String::from_utf8_lossy(part.source.as_bytes()));
            }
            RunEvent::Result(result) => ended.push(run.for_model(result)),
            RunEvent::TurnEnd(_) => {
                add(&mut messages, Role::Assistant, &std::mem::take(&mut reply));
                ended.sort_by_key(|result| result.call);
                let all: Vec<_> = ended.iter().map(CallResult::message).collect();
                if !all.is_empty() {
                    add(&mut messages, Role::User, results(&all, dialect)?.text());
                }
                ended.clear();
            }
            _ => {}
        }
    }
    Ok(messages)
}

/// Adds a message. Servers reject empty messages, and two of one role in a row.
pub(crate) fn add(messages: &mut Vec<Message>, role: Role, text: &str) {
    match messages.last_mut() {
        _ if text.trim().is_empty() => {}
        Some(last) if last.role == role => last.text = format!("{}\n\n{text}", last.text).into(),
        _ => messages.push(Message::new(role, text)),
    }
}
