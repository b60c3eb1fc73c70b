//! The connections that wait for their next request, the longest first, so that a new connection always finds a place.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

/// The connections without a request in progress, in the order in which they began to wait.
#[derive(Clone, Default)]
pub(super) struct Waiting(Arc<Shared>);

#[derive(Default)]
struct Shared {
    list: Mutex<List>,
    /// Wakes when a connection begins to wait.
    begun: Notify,
}

#[derive(Default)]
struct List {
    last: u64,
    waiting: BTreeMap<u64, Arc<Closing>>,
}

/// Whether a connection that waits must close.
#[derive(Default)]
pub(super) struct Closing {
    is_due: AtomicBool,
    pub(super) waker: AtomicWaker,
}

impl Closing {
    pub(super) fn is_due(&self) -> bool {
        self.is_due.load(Ordering::Relaxed)
    }
}

impl Waiting {
    /// Adds a connection, until the returned guard is dropped.
    pub(super) fn begin(&self, closing: &Arc<Closing>) -> Wait {
        let mut list = self.list();
        list.last += 1;
        let number = list.last;
        list.waiting.insert(number, Arc::clone(closing));
        drop(list);
        self.0.begun.notify_one();
        Wait {
            waiting: self.clone(),
            number,
        }
    }

    /// Closes the connection that has waited longest. Returns false if every connection has a request in progress.
    pub(super) fn close_longest(&self) -> bool {
        let Some((_, closing)) = self.list().waiting.pop_first() else {
            return false;
        };
        closing.is_due.store(true, Ordering::Relaxed);
        closing.waker.wake();
        true
    }

    /// Completes when a connection has begun to wait since the last time.
    pub(super) async fn begun(&self) {
        self.0.begun.notified().await;
    }

    fn list(&self) -> MutexGuard<'_, List> {
        self.0.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A wait for a request, until it is dropped.
pub(super) struct Wait {
    waiting: Waiting,
    number: u64,
}

impl Drop for Wait {
    fn drop(&mut self) {
        self.waiting.list().waiting.remove(&self.number);
    }
}
