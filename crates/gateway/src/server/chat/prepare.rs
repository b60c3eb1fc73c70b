//! Prepares a request before it is sent to the model server.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use tokio::sync::Mutex;

use crate::adapter::{Ask, Asked, Host, Prepared};
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::request::overloaded;
use crate::server::upstream::Connection;

/// The longest body that is processed on the async threads, in bytes. Longer ones get another thread.
const MAX_INLINE: usize = 256 << 10;

pub(in crate::server) struct PreparedRequest {
    pub(in crate::server) model: String,
    pub(in crate::server) is_streamed: bool,
    pub(in crate::server) task: Task,
}

pub(in crate::server) enum Task {
    /// Forwards the body to this model server unchanged.
    Forward(Vec<u8>, Arc<Connection>),
    Translate(Box<Asked>, Arc<Connection>),
    Reject(GatewayError),
}

/// Prepares the request with this body, without blocking other requests.
pub(in crate::server) async fn prepared(
    shared: &Arc<Shared>,
    api: ClientApi,
    body: Vec<u8>,
) -> PreparedRequest {
    let length = body.len();
    let cloned = Arc::clone(shared);
    let work = move || prepare(&cloned, api, body);
    without_blocking(shared, length, work)
        .await
        .unwrap_or_else(rejected)
}

/// Processes a body of this length without blocking other requests.
pub(in crate::server) async fn without_blocking<T: Send + 'static>(
    shared: &Shared,
    length: usize,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, GatewayError> {
    if length <= MAX_INLINE {
        return Ok(work());
    }
    let wait = shared.config.timeouts.body;
    let threads = &shared.process.long_bodies;
    let Ok(permit) = tokio::time::timeout(wait, threads.permit()).await else {
        let words = "too many large requests: try again soon";
        return Err(overloaded(words));
    };
    threads.run(permit, work).await
}

/// Reads so many more bytes of a reply. If that may take long, another thread does it, so that no other request waits. The work of
/// these threads is limited, so the wait for them is too.
pub(in crate::server) async fn read_reply<T: Send + 'static>(
    shared: &Shared,
    asked: &Arc<Mutex<Asked>>,
    bytes: usize,
    work: impl FnOnce(&mut Asked) -> T + Send + 'static,
) -> Result<T, GatewayError> {
    let mut asked = Arc::clone(asked).lock_owned().await;
    if !asked.takes_long(bytes) {
        return Ok(work(&mut asked));
    }
    let threads = &shared.process.long_replies;
    let permit = threads.permit().await;
    threads.run(permit, move || work(&mut asked)).await
}

fn rejected(error: GatewayError) -> PreparedRequest {
    PreparedRequest {
        model: String::new(),
        is_streamed: false,
        task: Task::Reject(error),
    }
}

fn prepare(shared: &Shared, api: ClientApi, body: Vec<u8>) -> PreparedRequest {
    let host = Host::new(shared.process.fresh.seed(), now());
    let Prepared {
        model,
        is_streamed,
        ask,
    } = shared.adapter.prepare(api, &body, host);
    let upstream = shared.routes.for_model(&model).map(Arc::clone);
    PreparedRequest {
        model,
        is_streamed,
        task: match (ask, upstream) {
            (Ask::Refused(error), _) | (_, Err(error)) => Task::Reject(error),
            (Ask::Asked(asked), Ok(upstream)) => Task::Translate(asked, upstream),
            (Ask::Unchanged, Ok(upstream)) => Task::Forward(body, upstream),
            (Ask::Renamed(body), Ok(upstream)) => Task::Forward(body, upstream),
        },
    }
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
