//! Propagates changes of a call to the calls that depend on it.
//!
//! Changes go through a queue instead of recursion, so a chain may have any length. Each edge carries at most two changes
//! of its target: that it is grounded, and that it has ended.
//!
//! A call in a cycle, or with an unknown id, is rejected at the end of the turn. A failed dependency skips only grounded
//! calls at once: calls that cannot be rejected that way. So the status of a call does not depend on timing.

use crate::NONE;
use crate::action::{Action, Link};
use crate::plan::Plan;
use crate::state::{CallIndex, State};

/// A change that dependents have not received yet.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Change {
    /// The call can no longer be part of a cycle or depend on an unknown id.
    Grounded(u32),
    /// The call has ended.
    Ended {
        call: u32,
        /// Whether its dependents can run.
        succeeded: bool,
        /// Whether its end also grounded it.
        grounds: bool,
    },
}

impl Plan {
    /// Propagates all pending changes, and those that follow from them.
    pub(crate) fn propagate(&mut self) {
        while let Some(change) = self.changes.pop_front() {
            let (Change::Grounded(call) | Change::Ended { call, .. }) = change;
            if let Change::Ended {
                call,
                succeeded: false,
                ..
            } = change
            {
                self.stop_turn(call);
            }
            let dependents = self.calls.get(call as usize).map(|c| c.dependents.first);
            let mut cursor = dependents.unwrap_or(NONE);
            while let Some(edge) = self.edges.step(&mut cursor) {
                self.apply(edge.dependent, change);
            }
        }
        self.release_in_order();
    }

    fn apply(&mut self, dependent: u32, change: Change) {
        let Some(entry) = self.calls.get_mut(dependent as usize) else {
            return;
        };
        if matches!(entry.state, State::Ended(_)) {
            return;
        }
        match change {
            Change::Grounded(_) => entry.ungrounded -= 1,
            Change::Ended {
                call,
                succeeded,
                grounds,
            } => {
                entry.ungrounded -= u32::from(grounds);
                entry.pending -= 1;
                if !succeeded && entry.failed == NONE {
                    entry.failed = call;
                }
            }
        }
        self.reconsider(dependent);
    }

    /// Skips a waiting call, or makes it ready, if nothing that it waits for prevents this any more.
    pub(crate) fn reconsider(&mut self, call: u32) {
        let Some(entry) = self.calls.get_mut(call as usize) else {
            return;
        };
        if entry.state != State::Waiting || entry.ungrounded > 0 {
            return;
        }
        if !entry.grounded {
            entry.grounded = true;
            self.changes.push_back(Change::Grounded(call));
        }
        if entry.failed != NONE {
            let failed = entry.failed;
            self.skip(call, Link::Dependency, failed);
        } else if entry.pending == 0 {
            self.set_state(call, State::Ready);
            self.actions.push_back(Action::Ready(CallIndex(call)));
        }
    }
}
