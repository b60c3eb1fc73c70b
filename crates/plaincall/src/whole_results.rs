//! The complete outputs of calls, so that the model can read the rest of a truncated result.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::cut::cut;
use crate::result::CallResult;

/// Complete outputs, by the ids of their calls.
#[derive(Debug)]
pub(crate) struct WholeResults {
    outputs: Mutex<Outputs>,
    limit: usize,
    /// Whether the model has the tool `read_result`.
    can_read_on: bool,
}

#[derive(Debug, Default)]
struct Outputs {
    by_id: HashMap<Arc<str>, Arc<str>>,
    /// The ids, in order of their first appearance.
    order: Vec<Arc<str>>,
}

impl WholeResults {
    /// Creates an empty store. `limit` is the length, in bytes, above which results are truncated.
    pub(crate) fn new(limit: usize, can_read_on: bool) -> Self {
        Self {
            outputs: Mutex::default(),
            limit,
            can_read_on,
        }
    }

    /// Returns the length above which results are truncated, in bytes. A result of `read_result` must not exceed it.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Keeps an output that will be truncated. An id means its latest call, so a short output replaces an earlier one too.
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

    /// Returns a result for the model: an output that exceeds the limit is truncated, with a note at its end
    /// (`spec/running.md`, "Long results").
    pub(crate) fn for_model(&self, result: &CallResult) -> CallResult {
        let output = result.output.as_deref();
        match output.filter(|output| output.len() > self.limit) {
            Some(output) => Self::cut_to(result, self.limit, output.len() as u64, self.can_read_on),
            None => result.clone(),
        }
    }

    /// Returns a result with at most `limit` bytes of its output, or `None` if the output is not longer.
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

    /// Returns the output of the latest call with this id.
    pub(crate) fn get(&self, id: &str) -> Option<Arc<str>> {
        self.lock().by_id.get(id).cloned()
    }

    /// Returns the latest `count` ids, in order, and the total number of ids.
    pub(crate) fn latest_ids(&self, count: usize) -> (Vec<Arc<str>>, usize) {
        let outputs = self.lock();
        let total = outputs.order.len();
        let latest = outputs.order.iter().skip(total.saturating_sub(count));
        (latest.cloned().collect(), total)
    }

    /// Ignores poisoning, because no panic can leave a partial change.
    fn lock(&self) -> MutexGuard<'_, Outputs> {
        self.outputs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
