//! Calling off what has not ended.

use crate::action::Action;
use crate::plan::Plan;
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
}
