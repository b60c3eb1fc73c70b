//! What happens at the end of a turn: unknown ids and cycles are judged, and deferred calls go or are rejected.

use std::sync::Arc;

use crate::action::RejectReason;
use crate::cycles::rings;
use crate::plan::{Plan, last_index};
use crate::state::{CallIndex, State};

/// How a reply came to its end (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The model has said all it wanted to.
    Whole,
    /// It broke off: nobody knows what else it would have held.
    Cut,
}

impl Plan {
    /// Judges the calls of the last turn (`spec/running.md`, "Checks at the end of the turn").
    pub(crate) fn judge(&mut self) {
        let first = self.turn_first(last_index(&self.turns));
        let end = self.next_call();
        for call in first..end {
            if self.state(call) == Some(State::Writing) {
                self.turn_down(call, RejectReason::Unfinished);
            }
        }
        self.settle();

        // All are judged by the graph as it is now, and only then does any of it have consequences;
        // otherwise the first member of a cycle would skip the others.
        for (call, reason) in self.faults(first, end) {
            self.turn_down(call, reason);
        }
        self.settle();
    }

    /// Lets the deferred calls of the last turn go, or rejects them.
    pub(crate) fn end_deferral(&mut self, reply: Reply) {
        for call in self.turn_first(last_index(&self.turns))..self.next_call() {
            let Some(entry) = self.calls.get_mut(call as usize) else {
                continue;
            };
            if !entry.deferred || entry.state != State::Waiting {
                continue;
            }
            match reply {
                Reply::Whole => {
                    entry.deferred = false;
                    entry.pending -= 1;
                    self.reconsider(call);
                }
                // All of them are rejected before any of it has consequences: none is skipped for another.
                Reply::Cut => self.turn_down(call, RejectReason::ReplyCut),
            }
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

        let unknown_ids = (first..end).filter_map(|call| {
            let ids = self.missing_ids(unsettled(call)?.edges);
            (!ids.is_empty()).then_some((call, RejectReason::UnknownIds { ids }))
        });
        let mut faults: Vec<(u32, RejectReason)> = unknown_ids.collect();
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
