//! Steps of the journal that stop when their invocation is cancelled.

use std::future::poll_fn;
use std::pin::pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::Poll;

use restate_sdk::prelude::*;
use tokio_util::sync::CancellationToken;

/// Stops a step when its invocation is cancelled.
#[derive(Default)]
pub(crate) struct Stopper {
    stop: CancellationToken,
    is_running: AtomicBool,
}

impl Stopper {
    /// Does the work of the step. It should end soon after the token is cancelled.
    pub(crate) async fn work<T, F>(
        &self,
        work: impl FnOnce(CancellationToken) -> F + Send,
    ) -> Result<Json<T>, HandlerError>
    where
        F: Future<Output = T> + Send,
    {
        self.is_running.store(true, Ordering::Relaxed);
        let done = work(self.stop.clone()).await;
        self.is_running.store(false, Ordering::Relaxed);
        Ok(Json(done))
    }

    /// Returns the result of the step. `cancelled` is an awakeable that is never resolved, but fails when the invocation is
    /// cancelled. It must not be polled while the result is journaled, because it would take the confirmation.
    ///
    /// # Errors
    /// Returns an error if the invocation was cancelled while the result was journaled.
    pub(crate) async fn step<T>(
        &self,
        step: impl Future<Output = Result<Json<T>, TerminalError>>,
        (_, cancelled): (String, impl Future<Output = Result<(), TerminalError>>),
    ) -> Result<T, TerminalError> {
        let (mut step, mut cancelled) = (pin!(step), pin!(cancelled));
        poll_fn(|task| {
            loop {
                if let Poll::Ready(done) = step.as_mut().poll(task) {
                    return Poll::Ready(done.map(Json::into_inner));
                }
                let may_stop = self.is_running.load(Ordering::Relaxed) && !self.stop.is_cancelled();
                if !may_stop || cancelled.as_mut().poll(task).is_pending() {
                    return Poll::Pending;
                }
                self.stop.cancel();
            }
        })
        .await
    }
}
