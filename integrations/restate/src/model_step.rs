//! The reply of a model, as one step of the journal.

use std::time::Duration;

use plaincall::call::history::results;
use plaincall::durable::DurableRun;
use plaincall::events::Usage;
use plaincall::syntax::DialectError;
use plaincall::{CallResult, Dialect, RunEvent, Stop};
use plaincall_agent::model::{ModelRequest, Piece, Reply as ModelReply, ReplyNext};
use plaincall_agent::{Message, Model, ModelError, ModelErrorKind, Role};
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
