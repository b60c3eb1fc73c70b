//! A task without a runtime: a future that gives items while it runs, and one value at its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many items may wait to be taken. Then the future waits too.
const WAITING: usize = 16;

/// A stream of what a future sends. The future runs only while the stream is polled, and is dropped with it.
pub(crate) struct Flow<'f, Item, Output> {
    items: Receiver<Item>,
    /// `None` when it has ended.
    future: Option<Pin<Box<dyn Future<Output = Output> + Send + 'f>>>,
    /// What the future returned: it is there when the stream has ended.
    pub(crate) end: Option<Output>,
}

impl<'f, Item, Output> Flow<'f, Item, Output> {
    pub(crate) fn new<F>(body: impl FnOnce(Sender<Item>) -> F) -> Self
    where
        F: Future<Output = Output> + Send + 'f,
    {
        let (sender, items) = channel(WAITING);
        Self {
            items,
            future: Some(Box::pin(body(sender))),
            end: None,
        }
    }
}

impl<Item, Output: Unpin> Stream for Flow<'_, Item, Output> {
    type Item = Item;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Item>> {
        let flow = &mut *self;
        if let Some(future) = &mut flow.future {
            match future.as_mut().poll(context) {
                Poll::Ready(end) => (flow.end, flow.future) = (Some(end), None),
                // What was sent before the end comes first.
                Poll::Pending => match ready!(flow.items.poll_recv(context)) {
                    Some(item) => return Poll::Ready(Some(item)),
                    // It has dropped its sender and goes on.
                    None => return Poll::Pending,
                },
            }
        }
        // The future is gone, and its senders with it. A poll would say that nothing is there when the task has done
        // enough for this time.
        Poll::Ready(flow.items.try_recv().ok())
    }
}
