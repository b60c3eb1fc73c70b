//! Inputs that the rules turn into events: answers of a gate, ends of tools, and time.

use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{CallFailure, CallIndex, Outcome, State, format_duration};
use plaincall_tool::{Arguments, Effect};

use super::{Command, RunState};
use crate::attempt::Ended;
use crate::context::DependencyResult;
use crate::event::{Admission, AdmittedBy, AwaitingApproval, BackOff, CallRef, Cancel, RunEvent};
use crate::gate::{Decision, ReadOnly, Recovery};
use crate::request::Request;
use crate::result::{CallResult, Status};
use crate::rules::Verdict;
use crate::tool_error::BoxError;

impl RunState {
    /// Takes the answer of a gate about a call that is ready.
    pub(crate) fn decide(
        &mut self,
        call: CallIndex,
        decision: Result<Decision, BoxError>,
        at: Duration,
    ) {
        let event = self.answer_event(call, decision);
        self.decided.push_back(event);
        self.settle(at);
    }

    /// Takes the end of a running tool: the call is retried or ends.
    pub(crate) fn end_tool(&mut self, call: CallIndex, mut ended: Ended, at: Duration) {
        self.explain_cancellation(call, &mut ended);
        let wait = self.wait_before_retry(call);
        let event = if let Some(wait) = wait.filter(|_| ended.outcome == Outcome::Error) {
            let error = ended.error.unwrap_or_default().into();
            about!(self, call, at, BackOff(BackOff { error, wait }))
        } else {
            self.end_of(call, ended)
        };
        self.apply(event, Vec::new(), at);
    }

    /// Takes the answer about the outcome of an interrupted call.
    pub(crate) fn recover(
        &mut self,
        call: CallIndex,
        recovery: Result<Recovery, BoxError>,
        at: Duration,
    ) {
        if !self.is_aside(call) || self.unknown.iter().any(|(one, _)| *one == call) {
            return;
        }
        self.set_timer(call, None);
        let event = match recovery {
            // A call that was cancelled before the interruption does not start again.
            Ok(Recovery::RunAgain) if self.is_cancelled(call) => Ok(self.cancelled_end(call)),
            Ok(Recovery::RunAgain) => Ok(RunEvent::Retry(self.about(call, at))),
            Ok(Recovery::Done { output }) => {
                let ended = Ended::new(Outcome::Ok, Some(output), None);
                Ok(self.end_of(call, ended.confirmed("completed")))
            }
            Ok(Recovery::NotDone { reason }) => {
                let ended = Ended::failed(reason).confirmed("did not complete");
                Ok(self.end_of(call, ended))
            }
            Ok(Recovery::Unknown) => Err(None),
            Err(error) => Err(Some(error)),
        };
        match event {
            Ok(event) => self.decided.push_back(event),
            // Nothing follows from its end, and the program may wait for its result before the turn continues.
            Err(error) if self.call(call).is_some_and(|entry| entry.is_submitted) => {
                self.end_as_unknown(call, error.as_ref(), at);
            }
            Err(error) => self.unknown.push((call, error)),
        }
        self.settle(at);
    }

    /// Cancels all calls. The outcome of interrupted calls stays unknown, because a cancellation does not determine it.
    pub(crate) fn cancel_run(&mut self, reason: &str, at: Duration) {
        let is_over = self.last_turn().is_none_or(|(_, is_closed)| is_closed);
        if is_over && !self.unresolved.is_empty() {
            self.stop_all(false);
        } else {
            self.input(RunEvent::cancel(None, reason), Vec::new(), at);
        }
        self.end_all_as_unknown(at);
        self.settle(at);
    }

    /// Cancels all calls, because the program dropped the run. A turn whose destructor did not run never closes.
    pub(crate) fn drop_run(&mut self, at: Duration) {
        self.deadline = None;
        if self.has_unended() {
            self.cancel_run("the run was dropped", at);
        }
    }

    /// Cancels all calls, because the turn reached its time limit, unless it did before or is over.
    pub(crate) fn time_out(&mut self, at: Duration) {
        if self.deadline.take().is_some() {
            let cancel = Cancel {
                call: None,
                reason: self.time_limit().into(),
                timed_out: true,
                at,
            };
            self.apply(RunEvent::Cancel(cancel), Vec::new(), at);
        }
    }

    fn time_limit(&self) -> String {
        let time = format_duration(self.policy.turn_timeout.unwrap_or_default());
        format!("the turn exceeded its time limit of {time}")
    }

    /// Returns when [`handle_timeout`](Self::handle_timeout) must be called.
    pub(crate) fn poll_timeout(&self) -> Option<Duration> {
        let timer = self.timers.first().map(|(at, _)| *at);
        timer.into_iter().chain(self.deadline).min()
    }

    /// Times out the turn, retries calls whose delay is over, and takes no answer as an answer, if it is time.
    pub(crate) fn handle_timeout(&mut self, now: Duration) {
        if self.deadline.is_some_and(|deadline| deadline <= now) {
            self.time_out(now);
            self.end_all_as_unknown(now);
            self.settle(now);
        }
        while let Some(&(_, call)) = self.timers.first().filter(|(at, _)| *at <= now) {
            self.set_timer(call, None);
            let time = self.policy.gate_timeout;
            let no_answer = || format!("no answer within {}", format_duration(time)).into();
            if self.state(call) == Some(State::Ready) {
                self.commands.push_back(Command::Forget(call));
                self.decide(call, Err(no_answer()), now);
            } else if self.is_aside(call) {
                self.commands.push_back(Command::Forget(call));
                self.recover(call, Err(no_answer()), now);
            } else {
                self.retry(call, now);
            }
        }
    }

    /// Retries a call whose delay is over. No effect on others: they run, or a person decides about them.
    pub(crate) fn retry(&mut self, call: CallIndex, at: Duration) {
        if self.state(call) != Some(State::BackOff) || self.is_aside(call) {
            return;
        }
        self.apply(RunEvent::Retry(self.about(call, at)), Vec::new(), at);
    }

    /// Applies what was decided, and ends calls with unknown outcome if nothing else is pending.
    pub(super) fn settle(&mut self, at: Duration) {
        loop {
            if let Some(event) = self.decided.pop_front() {
                self.input(event, Vec::new(), at);
            } else if !self.unknown.is_empty() && self.is_idle() {
                let (call, error) = self.unknown.remove(0);
                self.end_as_unknown(call, error.as_ref(), at);
            } else {
                return;
            }
        }
    }

    /// Returns whether nothing but calls with unknown outcome is pending in the turn.
    fn is_idle(&self) -> bool {
        let counts = self.plan.counts();
        counts.ready + counts.admitted + counts.running == 0
            && counts.back_off as usize == self.unknown.len()
            && !self.is_open()
    }

    /// Ends all interrupted calls as `unknown`, without waiting for answers.
    pub(crate) fn end_all_as_unknown(&mut self, at: Duration) {
        for (call, error) in std::mem::take(&mut self.unknown) {
            self.end_as_unknown(call, error.as_ref(), at);
        }
        if self.plan.counts().back_off == 0 {
            return;
        }
        for call in self.unended() {
            if self.is_aside(call) {
                self.commands.push_back(Command::Forget(call));
                self.end_as_unknown(call, None, at);
            }
        }
    }

    /// Ends all interrupted calls as `unknown` for good, because the conversation continues.
    pub(super) fn give_up_outcomes(&mut self, at: Duration) {
        if self.is_live {
            self.end_all_as_unknown(at);
            self.unresolved.clear();
        }
    }

    fn end_as_unknown(&mut self, call: CallIndex, error: Option<&BoxError>, at: Duration) {
        // A parent that delegates continues with this outcome.
        let parent = self.call(call).and_then(|entry| entry.parent);
        let parent = parent.and_then(|parent| self.tool(CallIndex::new(parent)));
        let is_awaited = parent.is_some_and(|tool| tool.policy.delegates);
        if !is_awaited && !self.is_followed(call) {
            self.unresolved.insert(call.get());
        }
        let event = self.end_of(call, Ended::unknown(error));
        self.input(event, Vec::new(), at);
    }

    /// Handles a call that is ready: its dependencies may have returned too much.
    pub(super) fn ready(&mut self, call: CallIndex, at: Duration) {
        let held = self.call(call).and_then(|entry| entry.held.clone());
        self.emit(about!(self, call, at, Ready(AwaitingApproval { held })));
        match self.count_dependency_bytes(call) {
            Err(reason) => {
                let _ = self.plan.deny(call, reason);
            }
            Ok(()) if self.is_live => self.ask(call, at),
            Ok(()) => {}
        }
    }

    /// Decides about a call that is ready: by a rule, an earlier approval of all calls of the tool, or without a gate. Otherwise
    /// the gate is asked.
    pub(super) fn ask(&mut self, call: CallIndex, at: Duration) {
        let Some(request) = self.request(call) else {
            return;
        };
        let verdict = self.rules.verdict(&request);
        let must_ask = verdict == Some(Verdict::Ask);
        let is_held = request.held.is_some();
        let by = match verdict {
            Some(Verdict::Deny { reason }) => {
                let event = self.denied(call, reason);
                return self.decided.push_back(event);
            }
            Some(Verdict::Allow) if !is_held => AdmittedBy::Rule,
            _ if !must_ask && !is_held && self.always.contains(&request.name) => AdmittedBy::Always,
            _ if self.has_gate => {
                self.wait_for_answer(call, at);
                let request = Box::new(request);
                return (self.commands).push_back(Command::Ask { request, must_ask });
            }
            _ => {
                let decision = if must_ask && !is_held {
                    let reason = "a rule requires approval for this call, and no one can be asked";
                    Decision::deny(reason)
                } else {
                    ReadOnly::decision(&request)
                };
                let event = self.answer_event(call, Ok(decision));
                return self.decided.push_back(event);
            }
        };
        let event = RunEvent::Admitted(self.admission(call, by));
        self.decided.push_back(event);
    }

    pub(super) fn wait_for_answer(&mut self, call: CallIndex, at: Duration) {
        self.set_timer(call, at.checked_add(self.policy.gate_timeout));
    }

    /// Counts the results that a call gets from its dependencies.
    ///
    /// # Errors
    /// Returns the reason if they exceed a limit.
    fn count_dependency_bytes(&mut self, call: CallIndex) -> Result<(), String> {
        let results = self.dependency_results(call);
        let bytes: usize = results.iter().map(DependencyResult::bytes).sum();
        let policy = &self.policy;
        if bytes > policy.dependency_limit {
            return Err(format!(
                "its dependencies returned {bytes} bytes, and a call gets at most {} (`dependency_limit`); make them return less, or depend on fewer calls",
                policy.dependency_limit
            ));
        }
        let total = self.counted_dependency_bytes.saturating_add(bytes);
        if total > policy.dependency_total {
            return Err(format!(
                "its dependencies returned {bytes} bytes; with them, the calls of this run would get {total} bytes from dependencies, and at most {} are allowed (`dependency_total`); use fewer dependencies",
                policy.dependency_total
            ));
        }
        self.counted_dependency_bytes = total;
        Ok(())
    }

    pub(super) fn request(&self, call: CallIndex) -> Option<Request> {
        let entry = self.call(call)?;
        let tool = self.tool(call);
        let effect = tool.map(|tool| tool.spec.effect);
        let parent = entry.parent.map(CallIndex::new);
        let parent = parent.and_then(|call| self.call(call));
        Some(Request {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            effect: effect.unwrap_or_default(),
            parent: parent.map(|call| Arc::clone(&call.name)),
            arguments: self.arguments(call),
            held: entry.held.clone(),
            delegates: tool.is_some_and(|tool| tool.policy.delegates),
            meanings: tool.map(|tool| tool.meanings.clone()).unwrap_or_default(),
        })
    }

    /// Returns what follows from the answer of a gate.
    fn answer_event(&self, call: CallIndex, decision: Result<Decision, BoxError>) -> RunEvent {
        let mut admission = self.admission(call, AdmittedBy::Gate);
        match decision {
            Ok(Decision::Allow) => {}
            Ok(Decision::AllowBecause { reason }) => admission.reason = Some(reason.into()),
            Ok(Decision::Always) => admission.always = true,
            // They are bound and checked when the call is admitted.
            Ok(Decision::Edit { arguments }) => admission.arguments = Some((&arguments).into()),
            Ok(Decision::Deny { reason }) => return self.denied(call, reason),
            Err(error) => {
                let reason = CallFailure::Approval(&error.to_string()).to_string();
                return self.denied(call, reason);
            }
        }
        RunEvent::Admitted(admission)
    }

    fn admission(&self, call: CallIndex, by: AdmittedBy) -> Admission {
        let CallRef { call, id, name, at } = self.about(call, Duration::ZERO);
        let (reason, always, arguments) = (None, false, None);
        Admission {
            call,
            id,
            name,
            by,
            reason,
            always,
            arguments,
            at,
        }
    }

    fn denied(&self, call: CallIndex, reason: String) -> RunEvent {
        RunEvent::Result(self.result(call, Status::Rejected, Some(reason)))
    }

    pub(super) fn end_of(&self, call: CallIndex, ended: Ended) -> RunEvent {
        RunEvent::Result(CallResult {
            output: ended.output,
            note: ended.note,
            untrusted: ended.untrusted,
            ..self.result(call, ended.outcome.into(), ended.error)
        })
    }

    /// Returns the reason if a rule denies a call with these arguments.
    pub(super) fn denied_by_rule(
        &self,
        call: CallIndex,
        arguments: &Arc<Arguments>,
    ) -> Option<String> {
        let mut request = self.request(call)?;
        request.arguments = Arc::clone(arguments);
        match self.rules.verdict(&request) {
            Some(Verdict::Deny { reason }) => Some(reason),
            _ => None,
        }
    }

    /// Starts a call, unless a new rule or the log prevents it.
    pub(super) fn start(&mut self, call: CallIndex) {
        // The rules may have changed since the call was approved, before the run was interrupted.
        let is_restored = call.index() < self.restored_calls;
        let denied = is_restored.then(|| self.denied_by_rule(call, &self.arguments(call)));
        let ended = if let Some(reason) = denied.flatten() {
            Ended::denied_after_all(&reason)
        } else if let Some(error) = self.log_failed.as_ref().filter(|_| self.writes(call)) {
            Ended::not_recorded(error)
        } else {
            return self.commands.push_back(Command::Start(call));
        };
        let event = self.end_of(call, ended);
        self.decided.push_back(event);
    }

    /// Returns the delay before a failed call is retried, or `None` if it is not retried.
    fn wait_before_retry(&self, call: CallIndex) -> Option<Duration> {
        let attempts = self.call(call)?.attempts;
        let tool = self.tool(call)?;
        let retry = tool.policy.retry?;
        let may_repeat = tool.spec.effect != Effect::Write;
        if !may_repeat || attempts >= retry.attempts || self.is_cancelled(call) {
            return None;
        }
        // Calls that fail together do not retry together.
        let chance = (call.get() ^ self.jitter).wrapping_mul(0x9E37_79B9);
        Some(retry.wait(attempts, f64::from(chance) / f64::from(u32::MAX)))
    }

    /// Returns the end of a call that was being stopped when it was interrupted.
    pub(super) fn cancelled_end(&self, call: CallIndex) -> RunEvent {
        let mut ended = Ended::cancelled(None);
        self.explain_cancellation(call, &mut ended);
        self.end_of(call, ended)
    }

    /// Changes the end of a running call that was cancelled: because its turn timed out, or on its own.
    fn explain_cancellation(&self, call: CallIndex, ended: &mut Ended) {
        let Some(entry) = self
            .call(call)
            .filter(|_| ended.outcome == Outcome::Cancelled)
        else {
            return;
        };
        if entry.stopped == Some(true) {
            ended.outcome = Outcome::Error;
            ended.error = Some(format!("timed out: {}", self.time_limit()));
        } else if let Some(reason) = &entry.cancelled {
            ended.error = Some(format!("{reason} while the call was running"));
        }
    }
}
