//! The end of active requests when the server stops.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use tokio::sync::watch;
use tokio::task::unconstrained;

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
            // Without a budget, so that its only poll registers the task.
            change: Box::pin(unconstrained(async move {
                // The sender lives as long as any request.
                let _ = changed.wait_for(|is_stopped| *is_stopped).await;
            })),
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

#[cfg(test)]
mod tests {
    use std::future::{Future as _, poll_fn};
    use std::pin::pin;
    use std::time::Duration;

    use tokio::sync::{mpsc, watch};
    use tokio::task::yield_now;
    use tokio::time::timeout;

    use super::Stopped;

    /// The first poll registers the task, even if the task has used up its budget.
    #[tokio::test]
    async fn a_busy_task_is_woken() {
        let (stop, is_stopped) = watch::channel(false);
        let task = tokio::spawn(async move {
            let (sender, mut pieces) = mpsc::unbounded_channel();
            (0..1000).for_each(|piece| sender.send(piece).unwrap());
            let mut stopped = pin!(Stopped::new(&is_stopped));
            let mut is_first = true;
            poll_fn(|context| {
                if std::mem::take(&mut is_first) {
                    while pieces.poll_recv(context).is_ready() {}
                }
                stopped.as_mut().poll(context)
            })
            .await;
        });
        yield_now().await;
        yield_now().await;
        stop.send_replace(true);
        timeout(Duration::from_secs(5), task)
            .await
            .unwrap()
            .unwrap();
    }
}
