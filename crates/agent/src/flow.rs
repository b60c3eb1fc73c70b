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
        // What was sent before the end comes first.
        if let State::Running(_) = self.state {
            match self.items.poll_recv(context) {
                Poll::Ready(Some(item)) => return Poll::Ready(Some(Next::Item(item))),
                Poll::Pending | Poll::Ready(None) => return Poll::Pending,
            }
        }
        // The future is gone, and its senders with it. A poll would say that nothing is there when the task has done
        // enough for this time.
        if let Ok(item) = self.items.try_recv() {
            return Poll::Ready(Some(Next::Item(item)));
        }
        match std::mem::replace(&mut self.state, State::Taken) {
            State::Ended(output) => Poll::Ready(Some(Next::End(output))),
            State::Running(_) | State::Taken => Poll::Ready(None),
        }
    }
}

impl<Item, Output> fmt::Debug for Flow<'_, Item, Output> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Flow").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A task may do only so much in one go. That must not be taken for the end of the items.
    #[tokio::test]
    async fn no_item_is_lost_at_the_end() {
        for count in 0..300 {
            let mut flow = Flow::new(|out| async move {
                for item in 0..count {
                    out.send(item).await.unwrap();
                }
            });
            let mut items = Vec::new();
            while let Some(Next::Item(item)) = flow.next().await {
                items.push(item);
            }
            assert_eq!(items, (0..count).collect::<Vec<_>>());
            assert!(flow.next().await.is_none());
        }
    }
}
