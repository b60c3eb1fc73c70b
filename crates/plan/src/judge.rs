//! What can only be judged when the turn is over: unknown ids and cycles.

use std::sync::Arc;

use crate::NONE;
use crate::action::RejectReason;
use crate::cycles::rings;
use crate::plan::{Plan, last_index};
use crate::state::{CallIndex, State};

impl Plan {
    /// Judges the calls of the last turn (`spec/running.md`, "Judged at the end of the turn").
    pub(crate) fn judge(&mut self) {
        let first = self.turn_first(last_index(&self.turns));
        let end = u32::try_from(self.calls.len()).unwrap_or(NONE);
        for call in first..end {
            if self.state(call) == Some(State::Writing) {
                self.turn_down(call, RejectReason::Unfinished);
            }
        }
        self.settle();

        // All are judged by the graph as it is now, and only then does any of it have consequences;
        // otherwise the first member of a cycle would skip the others.
        let reasons: Vec<(u32, RejectReason)> = self.faults(first, end);
        for (call, reason) in reasons {
            self.turn_down(call, reason);
        }
        self.settle();
    }

    /// The calls to reject, in order of appearance.
    fn faults(&self, first: u32, end: u32) -> Vec<(u32, RejectReason)> {
        let unsettled = |call: u32| {
            let entry = self.calls.get(call as usize)?;
            (!entry.grounded && entry.state == State::Waiting).then_some(entry)
        };
        let mut any = false;
        let successors = (first..end).map(|call| {
            let Some(entry) = unsettled(call) else {
                return Vec::new();
            };
            any = true;
            let edges = self.edges.of(entry.edges).iter();
            let open = edges.filter(|edge| unsettled(edge.target).is_some());
            open.map(|edge| edge.target - first).collect()
        });
        let successors: Vec<Vec<u32>> = successors.collect();
        if !any {
            return Vec::new();
        }

        let mut faults = Vec::new();
        for call in first..end {
            let Some(entry) = unsettled(call) else {
                continue;
            };
            let ids = self.missing_ids(entry.edges);
            if !ids.is_empty() {
                faults.push((call, RejectReason::UnknownIds { ids }));
            }
        }
        let unknown = faults.len();
        for members in rings(&successors) {
            let ring: Arc<[(CallIndex, Arc<str>)]> = members
                .iter()
                .filter_map(|member| {
                    let call = member + first;
                    let entry = self.calls.get(call as usize)?;
                    Some((CallIndex(call), self.id_text(entry.name)))
                })
                .collect();
            for member in members {
                let call = member + first;
                let known = faults.get(..unknown).unwrap_or_default();
                if known.binary_search_by_key(&call, |fault| fault.0).is_err() {
                    let ring = Arc::clone(&ring);
                    faults.push((call, RejectReason::Cycle { ring }));
                }
            }
        }
        faults.sort_by_key(|fault| fault.0);
        faults
    }
}
