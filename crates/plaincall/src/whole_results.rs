//! The whole outputs of a run's calls, for those who read on where a result was cut.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The whole outputs by the ids of their calls.
#[derive(Debug)]
pub(crate) struct WholeResults {
    outputs: Mutex<Outputs>,
    limit: usize,
}

#[derive(Debug, Default)]
struct Outputs {
    by_id: HashMap<Arc<str>, Arc<str>>,
    /// The ids in the order in which they came first.
    order: Vec<Arc<str>>,
}

impl WholeResults {
    /// None yet. `limit` is the length, in bytes, above which results are cut.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            outputs: Mutex::default(),
            limit,
        }
    }

    /// The length above which results are cut; a piece of one must not be cut again.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Keeps an output. A later one under the same id takes its place.
    pub(crate) fn insert(&self, id: Arc<str>, output: Arc<str>) {
        let mut outputs = self.lock();
        if outputs.by_id.insert(Arc::clone(&id), output).is_none() {
            outputs.order.push(id);
        }
    }

    /// The output of the latest call with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<str>> {
        self.lock().by_id.get(id).cloned()
    }

    /// The latest `count` ids, in order, and how many there are in all.
    pub(crate) fn latest_ids(&self, count: usize) -> (Vec<Arc<str>>, usize) {
        let outputs = self.lock();
        let total = outputs.order.len();
        let latest = outputs.order.iter().skip(total.saturating_sub(count));
        (latest.cloned().collect(), total)
    }

    /// Nothing is done under the lock that could leave half a change behind.
    fn lock(&self) -> MutexGuard<'_, Outputs> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
