//! The reply of a model, as one step of the journal.

use std::sync::Arc;
use std::time::Duration;

use plaincall::call::history::results;
use plaincall::durable::DurableRun;
use plaincall::events::Usage;
use plaincall::syntax::DialectError;
use plaincall::{CallResult, Dialect, RunEvent, Stop};
use plaincall_agent::model::{ModelRequest, Piece, ReplyNext};
use plaincall_agent::{Message, Model, ModelError, ModelErrorKind, Role};
use restate_sdk::prelude::*;
use serde::{Deserialize, Serialize};

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

/// Requests a reply and reads it to its end.
///
/// # Errors
/// Returns an error that Restate retries, or a terminal one if the same request cannot succeed later.
pub(crate) async fn request(
    model: Arc<dyn Model>,
    request: ModelRequest,
) -> Result<Json<WholeReply>, HandlerError> {
    let mut reply = model.reply(request);
    let (mut text, mut usage) = (String::new(), None);
    while let Some(next) = reply.next().await {
        match next.map_err(classified)? {
            ReplyNext::Piece(Piece::Text(part)) => text.push_str(&part),
            ReplyNext::Piece(Piece::Usage(so_far)) => usage = Some(so_far),
            ReplyNext::Piece(_) => {}
            ReplyNext::Finish(finish) => {
                let (stop, unix_ms) = (finish.stop, crate::worker::unix_ms());
                return Ok(Json(WholeReply {
                    text,
                    stop,
                    usage,
                    unix_ms,
                }));
            }
        }
        if text.len() > LONGEST {
            return Err(
                TerminalError::new(format!("the reply has more than {LONGEST} bytes")).into(),
            );
        }
    }
    Err("the reply of the model has no end".into())
}

fn classified(error: ModelError) -> HandlerError {
    match error.kind {
        ModelErrorKind::Refused | ModelErrorKind::TooLong => {
            TerminalError::new(format!("the model refused the request: {error}")).into()
        }
        _ => error.into(),
    }
}

/// The retries of a failed request: eight, over some four minutes.
pub(crate) fn retries() -> RunRetryPolicy {
    RunRetryPolicy::new()
        .initial_delay(Duration::from_secs(1))
        .exponentiation_factor(2.0)
        .max_delay(Duration::from_mins(1))
        .max_attempts(9)
        .max_duration(Duration::from_mins(30))
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
