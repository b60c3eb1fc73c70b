//! Calls that wait for the end of their turn.

use crate::action::RejectReason;
use crate::plan::{Plan, last_index};
use crate::state::State;

/// How a reply came to its end (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Reply {
    /// The model has said all it wanted to.
    Whole,
    /// It broke off: nobody knows what else it would have held.
    Cut,
}

impl Plan {
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
}
