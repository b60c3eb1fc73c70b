//! The reply of a model, as one step of the journal.

use std::time::Duration;

use plaincall::Stop;
use plaincall::events::Usage;
use plaincall_agent::model::{ModelRequest, Piece, Reply as ModelReply, ReplyNext};
use plaincall_agent::{Model, ModelError, ModelErrorKind};
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;

/// The longest reply, in bytes. Restate accepts values of 32 MiB.
const LONGEST: usize = 16 << 20;

/// A whole reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct WholeReply {
    pub(crate) text: String,
    pub(crate) stop: Stop,
    /// The reason that the server gave for its end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) reason: Option<String>,
    pub(crate) usage: Option<Usage>,
    /// When it ended, in milliseconds since 1970 (UTC).
    pub(crate) unix_ms: u64,
}

/// The reason why there is no reply.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) enum Failed {
    Cancelled,
    /// The conversation exceeds the context window.
    TooLong,
    /// The same request cannot succeed later.
    Refused(String),
    /// It may, after the time that the server states.
    Repeated {
        problem: String,
        after: Option<Duration>,
    },
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
    let read = reading.await.unwrap_or(Err(Failed::Cancelled));
    // A replay is cancelled before it reads the reply.
    if stop.is_cancelled() {
        return Err(Failed::Cancelled);
    }
    read
}

async fn read(mut reply: ModelReply) -> Result<WholeReply, Failed> {
    let (mut text, mut usage) = (String::new(), None);
    while let Some(next) = reply.next().await {
        match next.map_err(|error| classified(&error))? {
            ReplyNext::Piece(Piece::Text(part)) => text.push_str(&part),
            ReplyNext::Piece(Piece::Usage(so_far)) => usage = Some(so_far),
            ReplyNext::Piece(_) => {}
            ReplyNext::Finish(finish) => {
                return Ok(WholeReply {
                    text,
                    stop: finish.stop,
                    reason: finish.reason,
                    usage,
                    unix_ms: crate::worker::unix_ms(),
                });
            }
        }
        if text.len() > LONGEST {
            let problem = format!("the reply has more than {LONGEST} bytes");
            return Err(Failed::Refused(problem));
        }
    }
    Err(Failed::Repeated {
        problem: "the reply of the model has no end".to_owned(),
        after: None,
    })
}

fn classified(error: &ModelError) -> Failed {
    match error.kind {
        ModelErrorKind::TooLong => Failed::TooLong,
        ModelErrorKind::Refused => {
            Failed::Refused(format!("the model refused the request: {error}"))
        }
        _ => Failed::Repeated {
            problem: error.to_string(),
            after: error.retry_after,
        },
    }
}

/// Returns the delay before a failed request is repeated, given the number of requests so far and what the server states: eight
/// times, over some three minutes or more.
pub(crate) fn delay(requests: u32, after: Option<Duration>) -> Option<Duration> {
    const LONGEST: Duration = Duration::from_mins(1);
    let own = Duration::from_secs(1 << requests.checked_sub(1)?.min(6));
    let delay = after.map_or(own, |after| after.max(own));
    (requests < 9).then_some(delay.min(LONGEST))
}
