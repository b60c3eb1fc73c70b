//! Counts living values.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The number of living values of a kind.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live(Arc<AtomicUsize>);

/// One of them.
#[derive(Debug)]
pub(crate) struct One(Live);

impl Live {
    /// Counts one more, until it is dropped.
    pub(crate) fn one(&self) -> One {
        self.0.fetch_add(1, Ordering::Relaxed);
        One(self.clone())
    }

    pub(crate) fn count(&self) -> usize {
        self.0.load(Ordering::Relaxed)
    }
}

impl Drop for One {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}
