//! A task without a runtime: a future that gives items while it runs, and one value at its end.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::mpsc::{Receiver, Sender, channel};

/// How many items may wait to be taken. Then the future waits too.
const WAITING: usize = 16;

/// A future that gives items while it runs. It runs only while somebody asks for its items, and dropping it ends it.
pub(crate) struct Flow<'f, Item, Output> {
    items: Receiver<Item>,
    state: State<'f, Output>,
}

enum State<'f, Output> {
    Running(Pin<Box<dyn Future<Output = Output> + Send + 'f>>),
    Ended(Output),
    Taken,
}

/// What a flow has next.
pub(crate) enum Next<Item, Output> {
    /// An item.
    Item(Item),
    /// Its end.
    End(Output),
}

impl<'f, Item, Output> Flow<'f, Item, Output> {
    /// A flow of what the function's future sends.
    pub(crate) fn new<F>(body: impl FnOnce(Sender<Item>) -> F) -> Self
    where
        F: Future<Output = Output> + Send + 'f,
    {
        let (sender, items) = channel(WAITING);
        Self {
            items,
            state: State::Running(Box::pin(body(sender))),
        }
    }

    /// What comes next; `None` when the end was taken. It can be cancelled: nothing is lost if its future is dropped.
    pub(crate) async fn next(&mut self) -> Option<Next<Item, Output>> {
        poll_fn(|context| self.poll(context)).await
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Next<Item, Output>>> {
        if let State::Running(future) = &mut self.state
            && let Poll::Ready(output) = future.as_mut().poll(context)
        {
            self.state = State::Ended(output);
        }
        // What was sent before the end comes first. Once the future is gone, so is its sender.
        match self.items.poll_recv(context) {
            Poll::Ready(Some(item)) => return Poll::Ready(Some(Next::Item(item))),
            Poll::Pending if matches!(self.state, State::Running(_)) => return Poll::Pending,
            Poll::Ready(None) | Poll::Pending => {}
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Ended(output) => Poll::Ready(Some(Next::End(output))),
            running @ State::Running(_) => {
                // Its future has dropped the sender and goes on: nothing but its end can come.
                self.state = running;
                Poll::Pending
            }
            State::Taken => Poll::Ready(None),
        }
    }
}

impl<Item, Output> fmt::Debug for Flow<'_, Item, Output> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Flow").finish_non_exhaustive()
    }
}
