//! Calls that run in order of writing.

use crate::NONE;
use crate::action::Link;
use crate::plan::{Call, Plan};
use crate::policy::Order;
use crate::state::State;

/// The calls of all sequential turns, with marks that only move forward (`spec/running.md`,
/// "Order of writing").
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) calls: Vec<u32>,
    /// All calls before this place have ended.
    unended: usize,
    /// All calls before this place have ended or only read.
    barrier: usize,
    /// All calls before this place have been told that their turn has come, or have ended.
    held: usize,
}

/// What the sequence asks about a call.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Standing {
    Ended,
    Writing,
    Reads,
    Acts,
}

impl Plan {
    pub(crate) fn is_sequential(&self, turn: u32) -> bool {
        let turn = self.turns.get(turn as usize);
        turn.is_some_and(|turn| matches!(turn.order, Order::Sequential { .. }))
    }

    fn standing(&self, place: usize) -> Option<Standing> {
        let call = *self.sequence.calls.get(place)?;
        let entry = self.calls.get(call as usize)?;
        Some(match entry.state {
            State::Ended(_) => Standing::Ended,
            State::Writing => Standing::Writing,
            _ if self.tool_is(entry, |tool| tool.read) => Standing::Reads,
            _ => Standing::Acts,
        })
    }

    /// Lets the calls go whose turn has come in order of writing.
    pub(crate) fn release_in_order(&mut self) {
        while self.standing(self.sequence.unended) == Some(Standing::Ended) {
            self.sequence.unended += 1;
        }
        while let Some(Standing::Ended | Standing::Reads) = self.standing(self.sequence.barrier) {
            self.sequence.barrier += 1;
        }
        loop {
            let place = self.sequence.held;
            let goes = match self.standing(place) {
                Some(Standing::Ended) => false,
                Some(Standing::Reads) if place < self.sequence.barrier => true,
                Some(Standing::Acts) if place == self.sequence.unended => true,
                // No call left; or what holds this one back also holds back all calls after it.
                None | Some(Standing::Writing | Standing::Reads | Standing::Acts) => return,
            };
            self.sequence.held += 1;
            let call = self.sequence.calls.get(place).filter(|_| goes);
            if let Some(&call) = call {
                if let Some(entry) = self.calls.get_mut(call as usize) {
                    entry.pending -= 1;
                }
                self.reconsider(call);
            }
        }
    }

    /// With `stop_on_error`, skips the unstarted calls of the turn written after this one, which did not end
    /// well. Calls still being written hear of it when they are complete.
    pub(crate) fn stop_the_rest(&mut self, call: u32) {
        let entry = self.calls.get(call as usize);
        let Some(number) = entry.filter(|one| !one.submitted).map(|one| one.turn) else {
            return;
        };
        let end = self.turn_first(number.saturating_add(1));
        let Some(turn) = self.turns.get_mut(number as usize) else {
            return;
        };
        let stops = matches!(
            turn.order,
            Order::Sequential {
                stop_on_error: true
            }
        );
        if !stops || turn.stopped_by <= call {
            return;
        }
        // What lies behind the former stop has been skipped before: no call is visited twice.
        let rest = call.saturating_add(1)..turn.stopped_by.min(end);
        turn.stopped_by = call;
        for later in rest {
            // What has been started is left to end, also where it waits to be tried again.
            let entry = self.calls.get(later as usize);
            let skipped = |entry: &Call| {
                entry.state.is_unstarted()
                    && entry.state != State::Writing
                    && !entry.started
                    && !entry.submitted
            };
            if entry.is_some_and(skipped) {
                self.skip(later, Link::Order, call);
            }
        }
    }

    /// Skips a call that has just been completed in a turn that has stopped.
    pub(crate) fn stop_if_stopped(&mut self, call: u32) {
        let entry = self.calls.get(call as usize);
        let Some(entry) = entry.filter(|one| !one.submitted) else {
            return;
        };
        let turn = self.turns.get(entry.turn as usize);
        let by = turn.map_or(NONE, |turn| turn.stopped_by);
        if by < call && entry.state.is_unstarted() {
            self.skip(call, Link::Order, by);
        }
    }
}
