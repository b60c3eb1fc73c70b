//! Who hears what happens in a run.

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

/// How many events wait at most for one who listens. Those that come while so many wait are lost to it, and it is told
/// how many ([`RunEvent::Lagged`]).
pub const EVENT_QUEUE: usize = 1 << 16;

/// Watches a run: a metric, a display, a trace (`docs/observing.md`). It hears of everything and changes nothing.
///
/// It is called on a thread of its own, so it may take its time, and whatever it does, the run goes on; if more than
/// [`EVENT_QUEUE`] events wait for it, it misses some and is told so. One that panics is not called again.
pub trait Observer: Send + 'static {
    /// Hears of one event, in order.
    fn observe(&mut self, event: &RunEvent);
}

/// The events of a run, from [`Run::events`](crate::Run::events): a stream, which ends when the run was dropped and all its
/// calls have ended.
///
/// Nothing waits for the reader: a display that is slow, or a reader that has stopped reading, does not hold up a
/// call. See [`EVENT_QUEUE`] for what becomes of a reader that is too slow.
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

    /// The next event; `None` when the run is over: it was dropped and all its calls have ended.
    ///
    /// May be used in `select!`: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<RunEvent> {
        let event = self.receiver.recv().await;
        event.or_else(|| self.missed_at_the_end())
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        match self.receiver.try_recv() {
            Ok(event) => Some(event),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => self.missed_at_the_end(),
        }
    }

    fn next_blocking(&mut self) -> Option<RunEvent> {
        let event = self.receiver.blocking_recv();
        event.or_else(|| self.missed_at_the_end())
    }

    /// The last events of a run may be among those that were missed; then none comes after them that could bring the
    /// news.
    fn missed_at_the_end(&self) -> Option<RunEvent> {
        let count = self.missed.swap(0, Ordering::AcqRel);
        (count > 0).then_some(RunEvent::Lagged(Lagged { count }))
    }
}

impl Stream for RunEvents {
    type Item = RunEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<RunEvent>> {
        let event = ready!(self.receiver.poll_recv(context));
        Poll::Ready(event.or_else(|| self.missed_at_the_end()))
    }
}

/// Lets an observer hear on a thread of its own. What is returned says when it has heard everything.
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
    /// How many events it has missed since it was told of any.
    missed: Arc<AtomicU64>,
}

impl Listener {
    /// Whether it still listens.
    fn tell(&mut self, event: RunEvent) -> bool {
        // While it listens only this side changes the count.
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
    /// Adds one, and tells it what holds already.
    pub(crate) fn add(
        &mut self,
        mut listener: Listener,
        already: impl IntoIterator<Item = RunEvent>,
    ) {
        if already.into_iter().all(|event| listener.tell(event)) {
            self.all.push(listener);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    pub(crate) fn tell(&mut self, event: RunEvent) {
        let mut rest = self.all.len();
        let mut event = Some(event);
        self.all.retain_mut(|listener| {
            rest -= 1;
            let event = if rest == 0 {
                event.take()
            } else {
                event.clone()
            };
            event.is_some_and(|event| listener.tell(event))
        });
    }
}
