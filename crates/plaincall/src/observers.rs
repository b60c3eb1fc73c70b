//! Subscribers to the events of a run.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, ready};
#[cfg(not(interleaved))]
use std::thread;

use futures_core::Stream;
use tokio::sync::mpsc::error::{TryRecvError, TrySendError};
use tokio::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;
#[cfg(interleaved)]
use tokio::thread;

use crate::event::{Lagged, RunEvent};

/// The capacity of the queue of each subscriber. Events beyond it are dropped, and the subscriber gets their number in a
/// [`RunEvent::Lagged`].
pub const EVENT_QUEUE: usize = 1 << 16;

/// Observes the events of a run, for metrics, displays or traces (`docs/observing.md`). It cannot change the run.
///
/// It is called on its own thread, so it may block without delaying the run. If more than [`EVENT_QUEUE`] events wait for
/// it, some are dropped, and it gets a [`RunEvent::Lagged`]. An observer that panics is not called again.
///
/// A closure with one argument of type `&RunEvent` is an observer.
pub trait Observer: Send + 'static {
    /// Receives one event. Events arrive in order.
    fn observe(&mut self, event: &RunEvent);
}

impl<F: FnMut(&RunEvent) + Send + 'static> Observer for F {
    fn observe(&mut self, event: &RunEvent) {
        self(event);
    }
}

/// A stream of the events of a run, from [`Run::events`](crate::Run::events). It ends when the run was dropped and all its
/// calls have ended.
///
/// A slow reader does not delay the run; it loses events (see [`EVENT_QUEUE`]).
#[derive(Debug)]
pub struct RunEvents {
    receiver: Receiver<RunEvent>,
    missed: Arc<AtomicU64>,
}

impl RunEvents {
    pub(crate) fn new() -> (Listener, Self) {
        let (sender, receiver) = channel(EVENT_QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let listener = Listener {
            sender,
            missed: Arc::clone(&missed),
        };
        (listener, Self { receiver, missed })
    }

    /// Waits for the next event. Returns `None` when the run was dropped and all its calls have ended.
    ///
    /// Cancel safe: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<RunEvent> {
        let event = self.receiver.recv().await;
        event.or_else(|| self.lagged_at_the_end())
    }

    /// Returns the next event without waiting.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.lagged_at_the_end(),
        }
    }

    fn next_blocking(&mut self) -> Option<RunEvent> {
        let event = self.receiver.blocking_recv();
        event.or_else(|| self.lagged_at_the_end())
    }

    /// Reports events that were dropped at the end of the run, when no event follows that could report them.
    fn lagged_at_the_end(&self) -> Option<RunEvent> {
        let count = self.missed.swap(0, Ordering::AcqRel);
        (count > 0).then_some(RunEvent::Lagged(Lagged { count }))
    }
}

impl Stream for RunEvents {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let event = ready!(self.receiver.poll_recv(context));
        Poll::Ready(event.or_else(|| self.lagged_at_the_end()))
    }
}

/// Runs an observer on its own thread. The receiver completes when the observer got the last event.
pub(crate) fn observe(
    mut observer: Box<dyn Observer>,
) -> io::Result<(Listener, oneshot::Receiver<()>)> {
    let (listener, mut events) = RunEvents::new();
    let (done, is_done) = oneshot::channel();
    thread::Builder::new()
        .name("plaincall-observer".to_owned())
        .spawn(move || {
            while let Some(event) = events.next_blocking() {
                if catch_unwind(AssertUnwindSafe(|| observer.observe(&event))).is_err() {
                    break;
                }
            }
            let _ = done.send(());
        })?;
    Ok((listener, is_done))
}

#[derive(Debug)]
pub(crate) struct Listener {
    sender: Sender<RunEvent>,
    /// The number of lost events that were not reported yet.
    missed: Arc<AtomicU64>,
}

impl Listener {
    /// Sends an event. Returns whether the subscriber still exists.
    fn send(&mut self, event: RunEvent) -> bool {
        // While the subscriber exists, only this side changes the count.
        let count = self.missed.load(Ordering::Acquire);
        if count > 0 {
            let missed = RunEvent::Lagged(Lagged { count });
            if self.sender.try_send(missed).is_ok() {
                self.missed.store(0, Ordering::Release);
            }
        }
        match self.sender.try_send(event) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                self.missed.fetch_add(1, Ordering::AcqRel);
                true
            }
            Err(TrySendError::Closed(_)) => false,
        }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: Vec<Listener>,
}

impl Listeners {
    /// Adds a subscriber and sends it these events first.
    pub(crate) fn add(
        &mut self,
        mut listener: Listener,
        already: impl IntoIterator<Item = RunEvent>,
    ) {
        if already.into_iter().all(|event| listener.send(event)) {
            self.all.push(listener);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn send(&mut self, event: RunEvent) {
        let mut rest = self.all.len();
        let mut event = Some(event);
        self.all.retain_mut(|listener| {
            rest -= 1;
            let event = if rest == 0 {
                event.take()
            } else {
                event.clone()
            };
            event.is_some_and(|event| listener.send(event))
        });
    }
}
