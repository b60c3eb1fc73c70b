//! Prepares a request before it is sent to the model server.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plaincall_wire::openai::ErrorObject;

use crate::adapter::{Ask, Asked, Host, Prepared};
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::request::overloaded;

/// The longest name of a model that is reported, in bytes.
const MAX_MODEL: usize = 128;
/// The longest body that is processed on the async threads, in bytes. Longer ones get a blocking thread.
const MAX_INLINE: usize = 256 << 10;

pub(in crate::server) struct PreparedRequest {
    pub(in crate::server) model: String,
    pub(in crate::server) is_streamed: bool,
    pub(in crate::server) task: Task,
}

pub(in crate::server) enum Task {
    /// Forwards the body unchanged.
    Forward(Vec<u8>),
    Translate(Box<Asked>),
    Reject(GatewayError),
}

/// Prepares the request with this body, from the caller with this key, without blocking other requests.
pub(in crate::server) async fn prepared(
    shared: &Arc<Shared>,
    api: ClientApi,
    body: Vec<u8>,
    caller: &str,
) -> PreparedRequest {
    if body.len() <= MAX_INLINE {
        return prepare(shared, api, body, caller);
    }
    let wait = shared.config.timeouts.body;
    let permit = Arc::clone(&shared.long_bodies).acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(wait, permit).await else {
        let words = "too many large requests: try again soon";
        return rejected(overloaded(words));
    };
    let shared = Arc::clone(shared);
    let caller = caller.to_owned();
    let preparing = tokio::task::spawn_blocking(move || {
        let prepared = prepare(&shared, api, body, &caller);
        // Holds the permit to the end, even if the client disconnects.
        drop(permit);
        prepared
    });
    preparing.await.unwrap_or_else(|_| {
        let words = "internal error while processing the request";
        rejected(GatewayError::new(
            500,
            ErrorObject::new("gateway_error", words),
        ))
    })
}

fn rejected(error: GatewayError) -> PreparedRequest {
    PreparedRequest {
        model: String::new(),
        is_streamed: false,
        task: Task::Reject(error),
    }
}

fn prepare(shared: &Shared, api: ClientApi, body: Vec<u8>, caller: &str) -> PreparedRequest {
    let host = Host {
        caller,
        seed: shared.fresh.seed(),
        now: now(),
    };
    let Prepared {
        mut model,
        is_streamed,
        ask,
    } = shared.adapter.prepare(api, &body, host);
    model.truncate(model.floor_char_boundary(MAX_MODEL));
    PreparedRequest {
        model,
        is_streamed,
        task: match ask {
            Ask::Asked(asked) => Task::Translate(asked),
            Ask::Unchanged => Task::Forward(body),
            Ask::Refused(error) => Task::Reject(error),
        },
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
