//! Ends calls and turns.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{CallIndex, Outcome, RejectReason, State};
use plaincall_reply::CallError;

use crate::event::{CallRef, Cancel, RunEvent, TurnEnd};
use crate::result::{Because, CallResult, Cause, Link, Status};
use crate::run_state::{Call, Command, RunState, TurnState};

impl RunState {
    /// Ends a call that has started, or denies one that is ready. In a replay, a call that has ended already gets the texts that
    /// the log has.
    pub(super) fn end_or_deny(&mut self, result: CallResult) {
        let call = CallIndex::new(result.call);
        let outcome = match result.status {
            Status::Ok => Some(Outcome::Ok),
            Status::Error => Some(Outcome::Error),
            Status::Cancelled => Some(Outcome::Cancelled),
            Status::Unknown => Some(Outcome::Unknown),
            Status::Skipped | Status::Rejected => None,
        };
        match (self.state(call), outcome) {
            (Some(State::Running | State::BackOff), Some(outcome)) => self.end(result, outcome),
            (Some(State::Ready), None) if result.status == Status::Rejected => {
                let reason = result.error.as_deref().unwrap_or_default();
                let _ = self.plan.deny(call, reason);
            }
            (Some(State::Ended(status)), _) if status == result.status && !self.is_live => {
                if let Some(entry) = self.calls.get_mut(call.index()) {
                    entry.times.ended = result.times.ended;
                    let before = entry.result.take();
                    entry.result = Some(CallResult {
                        times: entry.times,
                        call_error: before.and_then(|before| before.call_error),
                        ..result
                    });
                }
            }
            _ => {}
        }
    }

    fn end(&mut self, result: CallResult, outcome: Outcome) {
        let (call, at) = (CallIndex::new(result.call), result.times.ended);
        let is_nested = (self.call(call)).is_some_and(|entry| entry.parent.is_some());
        let finishes = self.tool(call).is_some_and(|tool| tool.policy.finishes);
        if outcome == Outcome::Ok && finishes && !is_nested {
            self.finisher.get_or_insert(call);
        }
        self.set_result(result);
        self.keep_for_next_turn(call);
        let _ = self.plan.finish(call, outcome);
        self.cancel_children(call, at);
        self.close_turn_of(call, at);
    }

    /// Cancels the calls that the tool of a call has submitted.
    pub(super) fn cancel_children(&mut self, call: CallIndex, at: Duration) {
        for child in self.children.remove(&call).unwrap_or_default() {
            if let Some(entry) = self.calls.get_mut(child.index()) {
                let reason = || "its parent call ended".into();
                entry.cancelled.get_or_insert_with(reason);
                self.plan.cancel_call(child);
                self.run_actions(at);
            }
        }
    }

    /// Cancels all calls, or one.
    pub(super) fn cancel(&mut self, cancel: Cancel) {
        if let Some(call) = cancel.call {
            let entry = self.calls.get_mut(call as usize);
            let is_open = |entry: &&mut Call| entry.result.is_none() && entry.cancelled.is_none();
            if let Some(entry) = entry.filter(is_open) {
                entry.cancelled = Some(Arc::clone(&cancel.reason));
                self.emit(RunEvent::Cancel(cancel));
                self.plan.cancel_call(CallIndex::new(call));
            }
        } else {
            self.stop_all(cancel.timed_out);
            self.cancel_all(cancel);
        }
    }

    /// Stops all running calls, also those that continued after the log failed.
    pub(super) fn stop_all(&mut self, timed_out: bool) {
        for call in self.unended() {
            let is_cancelled = self.is_cancelled(call);
            if self.state(call) == Some(State::Running) {
                self.stop(call, timed_out);
            } else if let Some(entry) = self.calls.get_mut(call.index())
                && entry.is_aside
                && !is_cancelled
            {
                entry.stopped = Some(timed_out);
            }
        }
    }

    fn cancel_all(&mut self, cancel: Cancel) {
        self.cancelled = Some(Arc::clone(&cancel.reason));
        if cancel.timed_out {
            self.deadline = None;
        }
        self.emit(RunEvent::Cancel(cancel));
        self.cancelled_before = self.calls.len();
        self.plan.cancel_all();
    }

    /// Cancels all calls because the log cannot be written. Running tools continue: their end cannot be logged, but stopping
    /// them halfway would be worse.
    pub(super) fn fail_log(&mut self, error: Arc<str>, at: Duration) {
        self.cancel_all(Cancel {
            call: None,
            reason: format!("the log could not be written ({error})").into(),
            timed_out: false,
            at,
        });
        self.log_failed = Some(error);
    }

    pub(super) fn skip(&mut self, call: CallIndex, because: plaincall_plan::Because, at: Duration) {
        let cause = |index: CallIndex| Cause {
            call: index.get(),
            id: self.about(index, at).id,
        };
        let because = Because {
            link: because.link,
            direct: cause(because.direct),
            root: cause(because.root),
        };
        let status = self.calls.get(because.direct.call as usize);
        let status = status
            .and_then(|entry| entry.result.as_ref())
            .map(|result| result.status);
        let ended = match status {
            Some(Status::Error) => "failed",
            Some(Status::Skipped) => "was skipped",
            Some(Status::Rejected) => "was rejected",
            Some(Status::Cancelled) => "was cancelled",
            Some(Status::Unknown) => "was interrupted, with unknown outcome",
            _ => "did not succeed",
        };
        let id = &because.direct.id;
        let mut error = match because.link {
            Link::Dependency => format!("not run: it depends on `{id}`, which {ended}"),
            Link::Order => format!("not run: `{id}`, written before it, {ended}"),
        };
        if because.root != because.direct {
            let _ = write!(error, "; the first failure was `{}`", because.root.id);
        }
        self.end_unstarted(call, Status::Skipped, error, Some(because), at);
    }

    pub(super) fn reject(&mut self, call: CallIndex, reason: &RejectReason, at: Duration) {
        let error = match reason {
            RejectReason::DuplicateId { id, .. } => Some(CallError::DuplicateId(id.to_string())),
            RejectReason::SelfDependency { .. } | RejectReason::Cycle { .. } => {
                Some(CallError::Dependencies(reason.to_string()))
            }
            RejectReason::UnknownIds { .. } => Some(CallError::UnknownIds(reason.to_string())),
            _ => None,
        };
        if let Some((entry, error)) = self.calls.get_mut(call.index()).zip(error) {
            entry.error = Some(error.into());
        }
        self.end_unstarted(call, Status::Rejected, reason.to_string(), None, at);
    }

    /// Ends a call that is not running.
    pub(super) fn end_unstarted(
        &mut self,
        call: CallIndex,
        status: Status,
        error: String,
        because: Option<Because>,
        at: Duration,
    ) {
        let mut result = self.result(call, status, Some(error));
        (result.because, result.times.ended) = (because, at);
        self.set_result(result);
        self.commands.push_back(Command::Forget(call));
        self.close_turn_of(call, at);
    }

    pub(super) fn result(
        &self,
        call: CallIndex,
        status: Status,
        error: Option<String>,
    ) -> CallResult {
        let CallRef { call, id, name, .. } = self.about(call, Duration::ZERO);
        CallResult {
            error: error.map(Arc::from),
            ..CallResult::new(call, id, name, status)
        }
    }

    fn set_result(&mut self, mut result: CallResult) {
        let call = CallIndex::new(result.call);
        self.set_timer(call, None);
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        entry.arguments = None;
        entry.times.ended = result.times.ended;
        result.times = entry.times;
        let is_rejected = result.status == Status::Rejected;
        result.call_error = entry.error.take().filter(|_| is_rejected);
        result.note = result.note.or_else(|| entry.note.clone());
        entry.result = Some(result.clone());
        if entry.is_submitted {
            self.commands.push_back(Command::Deliver(call));
        }
        if let Some(turn) = self.turns.get_mut(entry.turn) {
            turn.unended = turn.unended.saturating_sub(1);
        }
        self.emit(RunEvent::Result(result));
    }

    pub(super) fn close_turn_of(&mut self, call: CallIndex, at: Duration) {
        if let Some(turn) = self.calls.get(call.index()).map(|entry| entry.turn) {
            self.close_turn(turn, at);
        }
    }

    pub(super) fn close_turn(&mut self, number: usize, at: Duration) {
        let Some(turn) = self.turns.get_mut(number) else {
            return;
        };
        if turn.state != TurnState::ReplyEnded || turn.unended > 0 {
            return;
        }
        turn.state = TurnState::Closed;
        if number + 1 == self.turns.len() {
            self.deadline = None;
        }
        if self.is_observed {
            let counts = self.results(number).collect();
            let turn = u32::try_from(number).unwrap_or(u32::MAX);
            self.emit(RunEvent::TurnEnd(TurnEnd { turn, counts, at }));
        }
        self.commands.push_back(Command::Close(number));
    }
}
