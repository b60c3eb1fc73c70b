//! The whole outputs of a run's calls, for those who read on where a result was cut.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cut::cut;
use crate::result::CallResult;

/// The whole outputs by the ids of their calls.
#[derive(Debug)]
pub(crate) struct WholeResults {
    outputs: Mutex<Outputs>,
    limit: usize,
    /// Whether the model has the tool that reads on.
    can_read_on: bool,
}

#[derive(Debug, Default)]
struct Outputs {
    by_id: HashMap<Arc<str>, Arc<str>>,
    /// The ids in the order in which they came first.
    order: Vec<Arc<str>>,
}

impl WholeResults {
    /// None yet. `limit` is the length, in bytes, above which results are cut.
    pub(crate) fn new(limit: usize, can_read_on: bool) -> Self {
        Self {
            outputs: Mutex::default(),
            limit,
            can_read_on,
        }
    }

    /// The length above which results are cut; a piece of one must not be cut again.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Keeps an output that the model will not see whole, so that it can read on. An id means its latest call, also if
    /// that has little to say.
    pub(crate) fn keep(&self, id: &Arc<str>, output: Option<&Arc<str>>) {
        let is_long = output.is_some_and(|output| output.len() > self.limit);
        if self.can_read_on && (is_long || self.get(id).is_some()) {
            self.insert(id, output.cloned().unwrap_or_default());
        }
    }

    fn insert(&self, id: &Arc<str>, output: Arc<str>) {
        let mut outputs = self.lock();
        if outputs.by_id.insert(Arc::clone(id), output).is_none() {
            outputs.order.push(Arc::clone(id));
        }
    }

    /// A result as it goes back to the model: an output that is longer than the limit is cut, with a note at its end
    /// (`spec/running.md`, "Long results").
    pub(crate) fn for_model(&self, result: &CallResult) -> CallResult {
        let output = result.output.as_deref();
        match output.filter(|output| output.len() > self.limit) {
            Some(output) => Self::cut_to(result, self.limit, output.len() as u64, self.can_read_on),
            None => result.clone(),
        }
    }

    /// A result with at most `limit` bytes of its output; `None` if it has no more.
    pub(crate) fn shortened(&self, result: &CallResult, limit: usize) -> Option<CallResult> {
        let output = result.output.as_ref();
        let output = output.filter(|output| output.len() > limit)?;
        let total = result.whole_bytes.unwrap_or(output.len() as u64);
        if self.get(&result.id).is_none() && result.whole_bytes.is_none() {
            self.insert(&result.id, Arc::clone(output));
        }
        // The id may mean a later call.
        let kept = self.get(&result.id);
        let is_kept = kept.is_some_and(|kept| kept.len() as u64 == total);
        Some(Self::cut_to(
            result,
            limit,
            total,
            is_kept && self.can_read_on,
        ))
    }

    fn cut_to(result: &CallResult, limit: usize, total: u64, can_read_on: bool) -> CallResult {
        let output = result.output.as_deref().unwrap_or_default();
        let short = cut(output, limit, total, &result.id, can_read_on);
        CallResult {
            output: Some(short.into()),
            whole_bytes: Some(total),
            ..result.clone()
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
