//! A response body whose pieces a future produces while the client reads.

use std::future::{Future, poll_fn};
use std::io;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use futures_util::FutureExt as _;
use hyper::body::{Body, Frame};
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep};

/// The maximum size of a piece. A slow client has one piece waiting here, one not yet handed over, and what `hyper` has
/// buffered: at most 44 KiB. With the piece and the connection buffer of the model server ([`READ`](super::upstream::READ)):
/// 64 KiB.
pub(super) const PIECE: usize = 4 << 10;

/// A body that polls its producer itself: no channel, and no task that must wake for each piece. If the client disconnects,
/// the producer is dropped with the body.
pub(super) struct ProducedBody {
    producer: Producer,
    slot: Arc<Mutex<Slot>>,
    idle_timeout: Duration,
    /// Drops the producer if the client stops reading.
    watch: Option<AbortHandle>,
    /// Whether `hyper` had the opportunity to send what was produced before an error.
    is_flushed: bool,
}

/// `None` once it has ended.
type Producer = Arc<Mutex<Option<Pin<Box<dyn Future<Output = ()> + Send>>>>>;

/// State shared by the producer and the body.
#[derive(Default)]
struct Slot {
    piece: Option<Bytes>,
    /// Since when the body could be read. `None` while the client waits for the next piece.
    unread_since: Option<Instant>,
    /// Whether the producer has nothing to do before its first piece.
    is_waiting: bool,
    is_complete: bool,
}

/// The producer's end of a [`ProducedBody`].
pub(super) struct BodySender(Arc<Mutex<Slot>>);

impl ProducedBody {
    /// Creates a body from its producer, and watches its client from now on.
    pub(super) fn new<F>(idle_timeout: Duration, producer: impl FnOnce(BodySender) -> F) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut body = Self::unstarted(idle_timeout, producer);
        body.watch();
        body
    }

    /// Creates a body from its producer, which [`started`](Self::started) must run. A client that reads nothing for `idle_timeout` counts as disconnected. The body is
    /// complete only after [`BodySender::complete`]; otherwise it ends with an error.
    pub(super) fn unstarted<F>(
        idle_timeout: Duration,
        producer: impl FnOnce(BodySender) -> F,
    ) -> Self
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let slot = Arc::new(Mutex::new(Slot {
            unread_since: Some(Instant::now()),
            ..Slot::default()
        }));
        let sender = BodySender(Arc::clone(&slot));
        // A panic of a model in this process ends only its response.
        let producer = AssertUnwindSafe(producer(sender)).catch_unwind();
        let producer: Producer = Arc::new(Mutex::new(Some(Box::pin(producer.map(drop)))));
        Self {
            producer,
            slot,
            idle_timeout,
            watch: None,
            is_flushed: false,
        }
    }

    /// Runs the producer until `is_started` completes, or the producer ends.
    pub(super) async fn started<T>(&mut self, is_started: impl Future<Output = T>) -> T {
        lock(&self.slot).unread_since = None;
        let mut is_started = std::pin::pin!(is_started);
        let started = poll_fn(|context| {
            if let Poll::Ready(started) = is_started.as_mut().poll(context) {
                return Poll::Ready(started);
            }
            self.produce(context);
            let started = is_started.as_mut().poll(context);
            if started.is_pending() && lock(&self.slot).is_waiting {
                self.watch();
            }
            started
        });
        let started = started.await;
        lock(&self.slot).unread_since = Some(Instant::now());
        self.watch();
        started
    }

    /// Starts the watch while the producer waits for its first piece, or else when the client can read. Before that, a new task would
    /// delay the request to the model server: it takes the place of the connection's task, which another thread must then run. After
    /// that, waking this thread would delay the first piece.
    fn watch(&mut self) {
        self.watch.get_or_insert_with(|| {
            let (producer, slot) = (Arc::clone(&self.producer), Arc::clone(&self.slot));
            tokio::spawn(watch(self.idle_timeout, producer, slot)).abort_handle()
        });
    }

    /// Polls the producer, and drops it when it has ended. Returns whether it has.
    fn produce(&self, context: &mut Context<'_>) -> bool {
        let mut producer = lock(&self.producer);
        if let Some(running) = producer.as_mut()
            && running.as_mut().poll(context).is_ready()
        {
            *producer = None;
        }
        producer.is_none()
    }
}

impl Drop for ProducedBody {
    fn drop(&mut self) {
        if let Some(watch) = &self.watch {
            watch.abort();
        }
    }
}

/// Drops the producer once the body has not been read for the timeout.
async fn watch(idle_timeout: Duration, producer: Producer, slot: Arc<Mutex<Slot>>) {
    loop {
        let unread_since = lock(&slot).unread_since;
        let left = unread_since.map_or(idle_timeout, |since| {
            idle_timeout.saturating_sub(since.elapsed())
        });
        if left.is_zero() {
            let abandoned = lock(&producer).take();
            drop(abandoned);
            return;
        }
        sleep(left).await;
    }
}

impl Body for ProducedBody {
    type Data = Bytes;
    // An error closes the connection, so that no client mistakes a part for the whole body.
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut piece = lock(&self.slot).piece.take();
        let mut has_ended = false;
        if piece.is_none() {
            has_ended = self.produce(context);
            piece = lock(&self.slot).piece.take();
        }
        let is_flushed = self.is_flushed;
        self.is_flushed = has_ended && piece.is_none();
        let mut slot = lock(&self.slot);
        slot.unread_since = piece.is_some().then(Instant::now);
        match piece {
            Some(piece) => Poll::Ready(Some(Ok(Frame::data(piece)))),
            None if !has_ended => Poll::Pending,
            None if slot.is_complete => Poll::Ready(None),
            None if is_flushed => Poll::Ready(Some(Err(io::ErrorKind::ConnectionAborted.into()))),
            None => {
                // After an error, `hyper` drops what it has not sent, even the head of the response.
                context.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

impl BodySender {
    /// Sends bytes to the client, once it has read those before.
    pub(super) async fn send(&self, mut bytes: Bytes) {
        while !bytes.is_empty() {
            // The body polls again after it has taken the piece.
            poll_fn(|_| match lock(&self.0).piece {
                None => Poll::Ready(()),
                Some(_) => Poll::Pending,
            })
            .await;
            lock(&self.0).piece = Some(bytes.split_to(bytes.len().min(PIECE)));
        }
    }

    /// Reports that the producer waits for the first piece.
    pub(super) fn waits(&self) {
        lock(&self.0).is_waiting = true;
    }

    /// Marks the body as complete.
    pub(super) fn complete(self) {
        lock(&self.0).is_complete = true;
    }
}

fn lock<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
