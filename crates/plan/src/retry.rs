//! Calls that failed and are tried again. When, and how often, is the caller's business: a plan has no clock.

use crate::plan::Plan;
use crate::refusal::Refusal;
use crate::state::{CallIndex, State};

impl Plan {
    /// A running call has failed and is to be tried again: it gives its slot back and waits for
    /// [`Plan::retry`], or for [`Plan::ended`] if it is given up (`spec/running.md`, "Retries").
    ///
    /// # Errors
    /// [`Refusal::UnknownCall`], and [`Refusal::NotNow`] unless the call is running, or if it has been asked
    /// to stop: a call that was called off is not tried again.
    pub fn back_off(&mut self, call: CallIndex) -> Result<(), Refusal> {
        let CallIndex(call) = call;
        let entry = *self.in_state(call, |state| state == State::Running)?;
        if call < self.called_off {
            return Err(Refusal::NotNow(entry.state));
        }
        self.slots.release(entry.tool);
        self.set_state(call, State::BackOff);
        Ok(())
    }

    /// A running call was cut off, and nobody knows what became of it: it gives its slot back and waits for
    /// [`Plan::ended`], or for [`Plan::retry`] (`spec/running.md`, "After a crash"). Calling it off does not end it,
    /// since that does not say what became of it; it only cannot be started again then.
    ///
    /// # Errors
    /// [`Refusal::UnknownCall`], and [`Refusal::NotNow`] unless the call is running.
    pub fn set_aside(&mut self, call: CallIndex) -> Result<(), Refusal> {
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
    /// [`Refusal::UnknownCall`], and [`Refusal::NotNow`] unless the call is backing off, or if it was called off.
    pub fn retry(&mut self, call: CallIndex) -> Result<(), Refusal> {
        let CallIndex(call) = call;
        let tool = self.in_state(call, |state| state == State::BackOff)?.tool;
        if call < self.called_off {
            return Err(Refusal::NotNow(State::BackOff));
        }
        self.aside.remove(&call);
        self.set_state(call, State::Admitted);
        self.slots.queue(call, tool);
        Ok(())
    }
}
