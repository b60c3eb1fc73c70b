//! The service that runs calls: one invocation for each attempt of a call.
//!
//! Restate sends a new invocation to the newest workers that have its service. So the name of the service contains a checksum of
//! the workers' definitions: a call reaches only workers with the definitions of its conversation.
//!
//! An invocation runs at least once: if its worker is lost, Restate runs it again on another one, from its journal. So an attempt
//! journals its own random token before it starts a tool. A later attempt finds that token, and not its own, so it knows that the
//! tool may have started. It does not start a tool that writes again; for that, Restate must have confirmed the token. It starts
//! other tools again, after a delay, but not without limit, because the tool may be the reason why its workers were lost.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;
use std::time::Duration;

use plaincall::Effect;
use plaincall::durable::{CallEnd, CallStart};
use restate_sdk::context::{Request, RequestTarget};
use restate_sdk::endpoint::ContextInternal;
use restate_sdk::prelude::*;
use restate_sdk::service::{Discoverable as _, Service, ServiceDefinition, macro_support};
use serde::{Deserialize, Serialize};

use crate::stopper::Stopper;
use crate::worker::{Worker, unix_ms};

/// The longest output of a tool, and the most that a call gets from its dependencies, in bytes. As JSON it may be six times as
/// long, and Restate accepts values of 32 MiB.
const LONGEST_OUTPUT: usize = 3 << 20;
pub(crate) const MOST_FROM_DEPENDENCIES: usize = 4 << 20;
/// How often a tool that does not write is started, if its workers are lost.
const STARTS: u32 = 6;

#[derive(Serialize, Deserialize)]
pub(crate) struct CallRequest {
    pub(crate) start: CallStart,
    pub(crate) idempotency_key: String,
}

impl CallRequest {
    /// Returns the name of a step, which the server shows: the service has no name of a tool.
    fn step(&self, step: &str) -> String {
        format!("{} {}: {step}", self.start.name, self.start.id)
    }
}

#[derive(Serialize, Deserialize)]
pub(crate) struct CallResponse {
    /// `None` if an earlier attempt was lost after the tool may have started.
    pub(crate) end: Option<CallEnd>,
    /// When it ended, in milliseconds since 1970 (UTC).
    pub(crate) unix_ms: u64,
}

pub(crate) struct Call(pub(crate) Worker);

/// Requests a call on a worker with the same definitions.
pub(crate) fn request<'c>(
    worker: &Worker,
    context: &'c ObjectContext<'c>,
    request: CallRequest,
) -> Request<'c, Json<CallRequest>, Json<CallResponse>> {
    let target = RequestTarget::service(service_name(worker), "run");
    context.request(target, Json(request))
}

fn service_name(worker: &Worker) -> String {
    format!("PlaincallCall-{}", worker.definitions().checksum())
}

#[service(name = "PlaincallCall")]
impl Call {
    /// Runs the tool of a call once.
    #[handler]
    async fn run(
        &self,
        context: Context<'_>,
        request: Json<CallRequest>,
    ) -> Result<Json<CallResponse>, HandlerError> {
        let request = request.into_inner();
        let now = |end| CallResponse {
            end,
            unix_ms: unix_ms(),
        };
        let is_write = request.start.effect == Effect::Write;
        for lost in 0..STARTS {
            if let Some(times) = lost.checked_sub(2) {
                context.sleep(delay(times)).await?;
            }
            let step = request.step("start");
            let start = is_own_start(&context, step, getrandom::u64()?, is_write).await;
            // If the call was cancelled there, an earlier attempt may have started the tool.
            let (is_cancelled, may_run) = (start.is_err(), start.unwrap_or_default());
            // If the call was cancelled while its end was journaled, its outcome is not known.
            let Ok(response) = self.response(&context, &request, may_run).await else {
                return Ok(Json(now(None)));
            };
            if is_write || is_cancelled || response.end.is_some() {
                return Ok(Json(response));
            }
        }
        let error = format!("the worker was lost in each of {STARTS} attempts");
        Ok(Json(now(Some(CallEnd::failed(error)))))
    }
}

/// Returns the delay before a tool is started again, after it was lost twice and so many times more.
fn delay(times: u32) -> Duration {
    Duration::from_secs(3_u64.saturating_pow(times))
}

/// Returns whether this attempt is the only one that may start the tool for this time. If it does not write, the journal is not
/// waited for: it is only not counted if the start is not in the journal.
async fn is_own_start(
    context: &Context<'_>,
    step: String,
    own: u64,
    is_write: bool,
) -> Result<bool, TerminalError> {
    let is_new = AtomicBool::new(false);
    let start = || async {
        is_new.store(true, Ordering::Relaxed);
        Ok(own)
    };
    let mut start = pin!(context.run(start).name(step));
    let journaled = poll_fn(|task| match start.as_mut().poll(task) {
        Poll::Pending if !is_write && is_new.load(Ordering::Relaxed) => Poll::Ready(Ok(own)),
        journaled => journaled,
    });
    Ok(journaled.await? == own)
}

/// Runs the handler of the service under its other name.
struct Dispatcher(Arc<Call>);

impl Service for Dispatcher {
    type Future = macro_support::ServiceBoxFuture;

    fn handle(&self, context: ContextInternal) -> Self::Future {
        let call = Arc::clone(&self.0);
        Box::pin(async move {
            let (request, metadata) = context.input().await;
            let response = call.run((&context, metadata).into(), request).await;
            context.handle_handler_result(response);
            context.end();
            Ok(())
        })
    }
}

impl Call {
    /// Returns the service with its name.
    pub(crate) fn definition(self) -> ServiceDefinition {
        let mut discovery = Self::discover();
        if let Ok(name) = service_name(&self.0).try_into() {
            discovery.name = name;
        }
        macro_support::service_definition(Dispatcher(Arc::new(self)), discovery)
    }

    /// Runs the tool, unless its end is in the journal, and journals its end. Stops it if the invocation is cancelled.
    async fn response(
        &self,
        context: &Context<'_>,
        request: &CallRequest,
        may_run: bool,
    ) -> Result<CallResponse, TerminalError> {
        let stopper = Stopper::default();
        let run = |stop| async move {
            let end = if may_run {
                let (start, key) = (request.start.clone(), request.idempotency_key.clone());
                let end = self.0.runner().run(start, key, stop).await;
                Some(end.truncated(LONGEST_OUTPUT))
            } else {
                None
            };
            let unix_ms = unix_ms();
            CallResponse { end, unix_ms }
        };
        let step = context.run(|| stopper.work(run)).name(request.step("end"));
        stopper.step(step, context.awakeable::<()>()).await
    }
}
