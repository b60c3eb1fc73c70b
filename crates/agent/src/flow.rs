//! A future that yields items while it runs, and a value at its end.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use tokio::sync::mpsc::{Receiver, Sender, channel};

/// The capacity of the channel. The future waits when it is full.
const WAITING: usize = 16;

/// A stream of the items that a future sends. The future runs only while the stream is polled, and is dropped with it.
pub(crate) struct Flow<'f, Item, Output> {
    items: Receiver<Item>,
    /// `None` when it has ended.
    future: Option<Pin<Box<dyn Future<Output = Output> + Send + 'f>>>,
    /// The output of the future, once the stream has ended.
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
                // Items sent before the end come first.
                Poll::Pending => match ready!(flow.items.poll_recv(context)) {
                    Some(item) => return Poll::Ready(Some(item)),
                    // It has dropped its sender and continues.
                    None => return Poll::Pending,
                },
            }
        }
        // The future and its senders are gone. `poll_recv` could return `Pending` here because of the cooperative budget.
        Poll::Ready(flow.items.try_recv().ok())
    }
}
