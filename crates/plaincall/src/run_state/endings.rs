//! Ends calls and turns.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::CallError;
use plaincall_plan::{CallIndex, RejectReason, State};

use crate::attempt::Ended;
use crate::event::{Cancel, RunEvent, TurnEnd};
use crate::result::{Because, CallResult, Cause, Link, Status};
use crate::run_state::{Command, RunState, TurnState};

impl RunState {
    pub(super) fn ended(&mut self, call: CallIndex, ended: Ended, at: Duration) {
        if !matches!(self.state(call), Some(State::Running | State::BackOff)) {
            return;
        }
        let Ended {
            outcome,
            output,
            error,
            note,
            untrusted,
        } = ended;
        if let Some(entry) = self.calls.get_mut(call.index()) {
            entry.note = note.or(entry.note.take());
            entry.untrusted = untrusted;
        }
        let status = Status::from(outcome);
        let is_nested = (self.call(call)).is_some_and(|entry| entry.parent.is_some());
        let finishes = self.tool(call).is_some_and(|tool| tool.policy.finishes);
        if status == Status::Ok && finishes && !is_nested {
            self.finisher.get_or_insert(call);
        }
        self.set_result(call, status, output, error.map(Arc::from), None, at);
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

    pub(super) fn cancel_call(&mut self, call: CallIndex, reason: Arc<str>, at: Duration) {
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        if entry.result.is_some() || entry.cancelled.is_some() {
            return;
        }
        entry.cancelled = Some(Arc::clone(&reason));
        self.emit(|| {
            RunEvent::Cancel(Cancel {
                call: Some(call.get()),
                reason,
                timed_out: false,
                at,
            })
        });
        self.plan.cancel_call(call);
    }

    pub(super) fn cancel(&mut self, reason: Arc<str>, timed_out: bool, at: Duration) {
        self.emit(|| {
            RunEvent::Cancel(Cancel {
                call: None,
                reason: Arc::clone(&reason),
                timed_out,
                at,
            })
        });
        self.cancelled = Some(reason);
        self.turn_timed_out = timed_out;
        self.cancelled_before = self.calls.len();
        self.plan.cancel_all();
    }

    pub(super) fn skip(&mut self, call: CallIndex, because: plaincall_plan::Because, at: Duration) {
        let cause = |index: CallIndex| Cause {
            call: index.get(),
            id: self.id(index),
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
        self.set_result(call, status, None, Some(error.into()), because, at);
        self.commands.push_back(Command::Forget(call));
        self.close_turn_of(call, at);
    }

    pub(super) fn set_result(
        &mut self,
        call: CallIndex,
        status: Status,
        output: Option<Arc<str>>,
        error: Option<Arc<str>>,
        because: Option<Because>,
        at: Duration,
    ) {
        let Some(entry) = self.calls.get_mut(call.index()) else {
            return;
        };
        entry.arguments = None;
        entry.times.ended = at;
        let result = CallResult {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            status,
            output,
            whole_bytes: None,
            error,
            call_error: entry.error.take().filter(|_| status == Status::Rejected),
            note: entry.note.clone(),
            untrusted: entry.untrusted.take(),
            because,
            times: entry.times,
        };
        if self.is_observed {
            self.events.push(RunEvent::Result(result.clone()));
        }
        entry.result = Some(result);
        if entry.is_submitted {
            self.commands.push_back(Command::Deliver(call));
        }
        let turn = entry.turn;
        if let Some(turn) = self.turns.get_mut(turn) {
            turn.unended = turn.unended.saturating_sub(1);
        }
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
        if self.is_observed {
            let counts = self.results(number).collect();
            let turn = u32::try_from(number).unwrap_or(u32::MAX);
            self.events
                .push(RunEvent::TurnEnd(TurnEnd { turn, counts, at }));
        }
        self.commands.push_back(Command::Close(number));
    }
}
