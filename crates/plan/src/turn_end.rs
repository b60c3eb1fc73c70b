//! The end of a turn: rejects calls with unknown ids and calls in cycles, then releases or rejects deferred calls.

use std::sync::Arc;

use crate::action::RejectReason;
use crate::cycles::cycles;
use crate::plan::{Plan, last_index};
use crate::state::{CallIndex, State};

/// How a reply ended (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The model finished the reply.
    Complete,
    /// The reply was truncated, so the intent of the model is unknown.
    Truncated,
}

impl Plan {
    /// Rejects the invalid calls of the last turn (`spec/running.md`, "Checks at the end of the turn").
    pub(crate) fn check_turn(&mut self) {
        let first = self.turn_first(last_index(&self.turns));
        let end = self.next_call();
        for call in first..end {
            if self.state(call) == Some(State::Writing) {
                self.reject_call(call, RejectReason::Unfinished);
            }
        }
        self.propagate();

        // All errors are found before the first has consequences. Otherwise the first call of a cycle would skip the others.
        for (call, reason) in self.dependency_errors(first, end) {
            self.reject_call(call, reason);
        }
        self.propagate();
    }

    /// Releases the deferred calls of the last turn, or rejects them.
    pub(crate) fn end_deferral(&mut self, reply: Reply) {
        for call in self.turn_first(last_index(&self.turns))..self.next_call() {
            let Some(entry) = self.calls.get_mut(call as usize) else {
                continue;
            };
            if !entry.deferred || entry.state != State::Waiting {
                continue;
            }
            match reply {
                Reply::Complete => {
                    entry.deferred = false;
                    entry.pending -= 1;
                    self.reconsider(call);
                }
                // All of them are rejected before the first has consequences, so none is skipped because of another.
                Reply::Truncated => self.reject_call(call, RejectReason::TruncatedReply),
            }
        }
        self.propagate();
    }

    /// Returns the calls to reject, in order of appearance.
    fn dependency_errors(&self, first: u32, end: u32) -> Vec<(u32, RejectReason)> {
        let ungrounded = |call: u32| {
            let entry = self.calls.get(call as usize)?;
            (!entry.grounded && entry.state == State::Waiting).then_some(entry)
        };
        let mut any = false;
        let successors = (first..end).map(|call| {
            let Some(entry) = ungrounded(call) else {
                return Vec::new();
            };
            any = true;
            let edges = self.edges.of(entry.edges).iter();
            let open = edges.filter(|edge| ungrounded(edge.target).is_some());
            open.map(|edge| edge.target - first).collect()
        });
        let successors: Vec<Vec<u32>> = successors.collect();
        if !any {
            return Vec::new();
        }

        let unknown_ids = (first..end).filter_map(|call| {
            let ids = self.missing_ids(ungrounded(call)?.edges);
            (!ids.is_empty()).then_some((call, RejectReason::UnknownIds { ids }))
        });
        let mut errors: Vec<(u32, RejectReason)> = unknown_ids.collect();
        let unknown = errors.len();
        for members in cycles(&successors) {
            let calls: Arc<[(CallIndex, Arc<str>)]> = members
                .iter()
                .filter_map(|member| {
                    let call = member + first;
                    let entry = self.calls.get(call as usize)?;
                    Some((CallIndex(call), self.id_text(entry.name)))
                })
                .collect();
            for member in members {
                let call = member + first;
                let with_unknown_id = errors.get(..unknown).unwrap_or_default();
                if with_unknown_id
                    .binary_search_by_key(&call, |error| error.0)
                    .is_err()
                {
                    let calls = Arc::clone(&calls);
                    errors.push((call, RejectReason::Cycle { calls }));
                }
            }
        }
        errors.sort_by_key(|error| error.0);
        errors
    }
}
