//! Calls that are called off, and calls that failed and are tried again. When, and how often, is the caller's business: a
//! plan has no clock.

use crate::action::Action;
use crate::plan::Plan;
use crate::plan_error::PlanError;
use crate::state::{CallIndex, State, Status};

impl Plan {
    /// Calls off everything: running calls are asked to stop, calls that were set aside stay there, all others
    /// that have not ended end as `cancelled`. Calls that still appear in the open turn are cancelled as well; the next turn is free
    /// again (`spec/running.md`, "Cancelling").
    pub fn cancel_all(&mut self) {
        self.turn_cancelled = self.turn_open;
        for call in self.called_off..self.next_call() {
            self.call_off(call);
        }
        self.called_off = self.next_call();
        self.settle();
    }

    /// Calls off one call, as [`cancel_all`](Self::cancel_all) does.
    pub fn cancel_call(&mut self, call: CallIndex) {
        self.call_off(call.0);
        self.settle();
    }

    fn call_off(&mut self, call: u32) {
        match self.state(call) {
            Some(State::Running) => self.actions.push_back(Action::Stop(CallIndex(call))),
            None | Some(State::Ended(_)) => {}
            Some(State::BackOff) if self.aside.contains(&call) => {}
            Some(_) => self.cancel(call),
        }
    }

    /// Ends a call that is not running as `cancelled`.
    pub(crate) fn cancel(&mut self, call: u32) {
        self.finish(call, Status::Cancelled);
        self.actions.push_back(Action::Cancel(CallIndex(call)));
    }

    /// A running call has failed and is to be tried again: it gives its slot back and waits for
    /// [`Plan::retry`], or for [`Plan::ended`] if it is given up (`spec/running.md`, "Retries").
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is running, or if it has been asked
    /// to stop: a call that was called off is not tried again.
    pub fn back_off(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let entry = *self.in_state(call, |state| state == State::Running)?;
        if call < self.called_off {
            return Err(PlanError::NotNow(entry.state));
        }
        self.slots.release(entry.tool);
        self.set_state(call, State::BackOff);
        Ok(())
    }

    /// A running call was interrupted, with unknown outcome: it gives its slot back and waits for
    /// [`Plan::ended`], or for [`Plan::retry`] (`spec/running.md`, "After a crash"). Calling it off does not end it,
    /// since that does not say what became of it; it only cannot be started again then.
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is running.
    pub fn set_aside(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::Running)?.tool;
        self.slots.release(tool);
        self.set_state(call, State::BackOff);
        self.aside.insert(call);
        Ok(())
    }

    /// The time of waiting is over: the call is queued for a slot and then started again. The gate is not
    /// asked again.
    ///
    /// # Errors
    /// [`PlanError::UnknownCall`], and [`PlanError::NotNow`] unless the call is backing off, or if it was called off.
    pub fn retry(&mut self, call: CallIndex) -> Result<(), PlanError> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::BackOff)?.tool;
        if call < self.called_off {
            return Err(PlanError::NotNow(State::BackOff));
        }
        self.aside.remove(&call);
        self.set_state(call, State::Admitted);
        self.slots.queue(call, tool);
        Ok(())
    }
}
