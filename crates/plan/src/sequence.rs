//! Calls that run in written order.

use crate::NONE;
use crate::action::Link;
use crate::plan::{Call, Plan};
use crate::policy::Order;
use crate::state::State;

/// The calls of all sequential turns, with positions that only increase (`spec/running.md`, "Written order").
#[derive(Clone, Debug, Default)]
pub(crate) struct Sequence {
    pub(crate) calls: Vec<u32>,
    /// All calls before this position have ended.
    unended: usize,
    /// All calls before this position have ended or only read.
    barrier: usize,
    /// All calls before this position have been released or have ended.
    released: usize,
}

/// How a call affects the calls written after it.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Ended,
    Writing,
    Reads,
    Writes,
}

impl Plan {
    pub(crate) fn is_sequential(&self, turn: u32) -> bool {
        let turn = self.turns.get(turn as usize);
        turn.is_some_and(|turn| matches!(turn.order, Order::Sequential { .. }))
    }

    fn progress(&self, position: usize) -> Option<Progress> {
        let call = *self.sequence.calls.get(position)?;
        let entry = self.calls.get(call as usize)?;
        Some(match entry.state {
            State::Ended(_) => Progress::Ended,
            State::Writing => Progress::Writing,
            _ if self.tool_is(entry, |tool| tool.read) => Progress::Reads,
            _ => Progress::Writes,
        })
    }

    /// Releases the calls that no longer wait for calls written before them.
    pub(crate) fn release_in_order(&mut self) {
        while self.progress(self.sequence.unended) == Some(Progress::Ended) {
            self.sequence.unended += 1;
        }
        while let Some(Progress::Ended | Progress::Reads) = self.progress(self.sequence.barrier) {
            self.sequence.barrier += 1;
        }
        loop {
            let position = self.sequence.released;
            let is_released = match self.progress(position) {
                Some(Progress::Ended) => false,
                Some(Progress::Reads) if position < self.sequence.barrier => true,
                Some(Progress::Writes) if position == self.sequence.unended => true,
                // There is no call, or the calls that hold this one back hold back all later calls too.
                None | Some(Progress::Writing | Progress::Reads | Progress::Writes) => return,
            };
            self.sequence.released += 1;
            let call = self.sequence.calls.get(position).filter(|_| is_released);
            if let Some(&call) = call {
                if let Some(entry) = self.calls.get_mut(call as usize) {
                    entry.pending -= 1;
                }
                self.reconsider(call);
            }
        }
    }

    /// With `stop_on_error`, skips the calls of the turn that are written after this call, which did not succeed, and that
    /// have not started. Calls that are still being written are skipped when they are complete.
    pub(crate) fn stop_turn(&mut self, call: u32) {
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
        // The calls after the former `stopped_by` were skipped already, so no call is visited twice.
        let rest = call.saturating_add(1)..turn.stopped_by.min(end);
        turn.stopped_by = call;
        for later in rest {
            // Started calls end normally, also if they wait for a retry.
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

    /// Skips a call that has just been completed, if its turn was stopped by an earlier call.
    pub(crate) fn skip_if_stopped(&mut self, call: u32) {
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
