//! Cancellations and retries. The caller decides when to retry and how often, because a plan has no clock.

use crate::action::Action;
use crate::plan::Plan;
use crate::plan_error::PlanError;
use crate::state::{CallIndex, State, Status};

impl Plan {
    /// Cancels all calls that have not ended: [`Action::Stop`] comes out for running calls, calls that were set aside stay
    /// set aside, and all others end as `cancelled`. Calls that appear later in the open turn are cancelled too. The next
    /// turn is not affected (`spec/running.md`, "Cancelling").
    pub fn cancel_all(&mut self) {
        self.turn_cancelled = self.turn_open;
        for call in self.cancelled_before..self.next_call() {
            self.cancel_or_stop(call);
        }
        self.cancelled_before = self.next_call();
        self.propagate();
    }

    /// Cancels one call, as [`cancel_all`](Self::cancel_all) does.
    pub fn cancel_call(&mut self, call: CallIndex) {
        self.cancel_or_stop(call.0);
        self.propagate();
    }

    fn cancel_or_stop(&mut self, call: u32) {
        match self.state(call) {
            Some(State::Running) => self.actions.push_back(Action::Stop(CallIndex(call))),
            None | Some(State::Ended(_)) => {}
            Some(State::BackOff) if self.aside.contains(&call) => {}
            Some(_) => self.cancel(call),
        }
    }

    /// Ends a call that is not running as `cancelled`.
    pub(crate) fn cancel(&mut self, call: u32) {
        self.end_call(call, Status::Cancelled);
        self.actions.push_back(Action::Cancel(CallIndex(call)));
    }

    /// Reports that a running call has failed and will be retried. The call frees its slot and waits for [`Plan::retry`],
    /// or for [`Plan::finish`] if it is not retried after all (`spec/running.md`, "Retries").
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is not running or was cancelled.
    pub fn back_off(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let entry = *self.in_state(call, |state| state == State::Running)?;
        if call < self.cancelled_before {
            return Err(PlanError::InvalidState(entry.state));
        }
        self.slots.release(entry.tool);
        self.set_state(call, State::BackOff);
        Ok(())
    }

    /// Reports that a running call was interrupted and its outcome is unknown. The call frees its slot and waits for
    /// [`Plan::finish`] or [`Plan::retry`] (`spec/running.md`, "After a crash"). A cancellation does not end it, because its
    /// outcome stays unknown, but it cannot be retried afterwards.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is not running.
    pub fn set_aside(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::Running)?.tool;
        self.slots.release(tool);
        self.set_state(call, State::BackOff);
        self.aside.insert(call);
        Ok(())
    }

    /// Retries a call: it waits for a slot, then starts again. The gate is not asked again.
    ///
    /// # Errors
    /// Returns [`PlanError::UnknownCall`], or [`PlanError::InvalidState`] if the call is not backing off or was cancelled.
    pub fn retry(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::BackOff)?.tool;
        if call < self.cancelled_before {
            return Err(PlanError::InvalidState(State::BackOff));
        }
        self.aside.remove(&call);
        self.set_state(call, State::Admitted);
        self.slots.queue(call, tool);
        Ok(())
    }
}
