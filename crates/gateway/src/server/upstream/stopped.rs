//! The end of active requests when the server stops.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;

/// Completes when active requests are cancelled.
pub(super) struct Stopped {
    current: watch::Receiver<bool>,
    change: Pin<Box<dyn Future<Output = ()> + Send>>,
    /// The task that the change will wake. A stream polls this for each piece, so it does not register again.
    waker: Option<Waker>,
}

impl Stopped {
    pub(super) fn new(is_stopped: &watch::Receiver<bool>) -> Self {
        let mut changed = is_stopped.clone();
        Self {
            current: is_stopped.clone(),
            change: Box::pin(async move {
                // The sender lives as long as any request.
                let _ = changed.wait_for(|is_stopped| *is_stopped).await;
            }),
            waker: None,
        }
    }
}

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        if *self.current.borrow() {
            return Poll::Ready(());
        }
        let is_registered = self.waker.as_ref();
        if is_registered.is_some_and(|waker| waker.will_wake(context.waker())) {
            return Poll::Pending;
        }
        self.waker = Some(context.waker().clone());
        self.change.as_mut().poll(context)
    }
}
