//! Prepares a request before it is sent to the model server.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use plaincall_wire::openai::ErrorObject;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::task::block_in_place;

use crate::adapter::{Ask, Asked, Host, Prepared};
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::request::overloaded;
use crate::server::upstream::Connection;

/// The longest body that is processed on the async threads, in bytes. Longer ones get a blocking thread.
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

/// Prepares the request with this body, from the caller with this key, without blocking other requests.
pub(in crate::server) async fn prepared(
    shared: &Arc<Shared>,
    api: ClientApi,
    body: Vec<u8>,
    caller: &str,
) -> PreparedRequest {
    let length = body.len();
    let (cloned, caller) = (Arc::clone(shared), caller.to_owned());
    let work = move || prepare(&cloned, api, body, &caller);
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
    let permit = Arc::clone(&shared.process.long_bodies).acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(wait, permit).await else {
        let words = "too many large requests: try again soon";
        return Err(overloaded(words));
    };
    let working = tokio::task::spawn_blocking(move || {
        let done = work();
        // Holds the permit to the end, even if the client disconnects.
        drop(permit);
        done
    });
    working.await.map_err(|_| {
        let words = "internal error while processing the request";
        GatewayError::new(500, ErrorObject::new("gateway_error", words))
    })
}

/// Does work that cannot move to another thread. If it takes long, other requests get another thread, unless the runtime has
/// only one.
pub(in crate::server) fn in_place<T>(takes_long: bool, work: impl FnOnce() -> T) -> T {
    let flavor = Handle::try_current().map(|runtime| runtime.runtime_flavor());
    match flavor {
        Ok(RuntimeFlavor::MultiThread) if takes_long => block_in_place(work),
        _ => work(),
    }
}

fn rejected(error: GatewayError) -> PreparedRequest {
    PreparedRequest {
        model: String::new(),
        is_streamed: false,
        task: Task::Reject(error),
    }
}

fn prepare(shared: &Shared, api: ClientApi, body: Vec<u8>, caller: &str) -> PreparedRequest {
    let host = Host::new(caller, shared.process.fresh.seed(), now());
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

#[cfg(test)]
mod tests {
    use std::sync::mpsc;
    use std::time::Duration;

    use super::in_place;

    #[tokio::test(flavor = "multi_thread", worker_threads = 1)]
    async fn other_requests_do_not_wait_for_long_work() {
        let (other, done) = mpsc::channel();
        let long = tokio::spawn(async move {
            // The only thread of the runtime must run this while the work below waits for it.
            tokio::spawn(async move { other.send(()) });
            in_place(true, || done.recv_timeout(Duration::from_mins(1)))
        });
        assert_eq!(long.await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn a_runtime_with_one_thread_does_the_work() {
        assert_eq!(in_place(true, || 1), 1);
    }
}
