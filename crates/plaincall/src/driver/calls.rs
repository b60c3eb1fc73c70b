//! The actions for one call: decide, start, stop, retry, recover.

use std::hash::BuildHasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, CallError, Effect, bind_arguments};
use plaincall_plan::{CallIndex, Outcome, State};
use tokio::task::{self, JoinError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Doing, Done, Driver, Running};
use crate::attempt::{Attempt, Ended, format_duration};
use crate::context::Context;
use crate::event::{AdmittedBy, Resumed, RunEvent};
use crate::gate::{Decision, ReadOnly, Recovery};
use crate::replay::Replayed;
use crate::request::Request;
use crate::rules::Verdict;
use crate::run_state::Input;
use crate::tool_error::BoxError;

impl Driver {
    /// Decides whether a call may run: by a rule, by an earlier approval of all calls of the tool, or by the gate.
    pub(super) fn ask(&mut self, call: CallIndex) {
        if let Err(reason) = self.count_dependency_bytes(call) {
            return self.decided.push_back(Input::Deny { call, reason });
        }
        let Some(request) = self.request(call) else {
            return;
        };
        let verdict = self.config.shared.rules.verdict(&request);
        let must_ask = verdict == Some(Verdict::Ask);
        let is_held = request.held.is_some();
        match verdict {
            Some(Verdict::Allow) if !is_held => return self.admit(call, AdmittedBy::Rule),
            Some(Verdict::Deny { reason }) => {
                return self.decided.push_back(Input::Deny { call, reason });
            }
            Some(Verdict::Allow | Verdict::Ask) | None => {}
        }
        if !must_ask && !is_held && self.always.contains(&request.name) {
            return self.admit(call, AdmittedBy::Always);
        }
        let Some(gate) = &self.config.gate else {
            let decision = if must_ask && !is_held {
                Decision::deny("a rule requires approval for this call, and no one can be asked")
            } else {
                ReadOnly::decision(&request)
            };
            return self.decide(call, Ok(decision));
        };
        let gate = Arc::clone(gate);
        let time = self.run_state.policy.gate_timeout;
        let deciding = async move {
            let decision = timeout(time, gate.decide(&request)).await;
            Done::Decided(decision.unwrap_or_else(|_| Err(no_answer(time))))
        };
        self.wait_for(call, Doing::Deciding, deciding);
    }

    /// Counts the results that a call gets from its dependencies.
    ///
    /// # Errors
    /// Returns the reason if they exceed a limit.
    fn count_dependency_bytes(&mut self, call: CallIndex) -> Result<(), String> {
        let bytes = self.run_state.dependency_bytes(call);
        let policy = &self.run_state.policy;
        if bytes > policy.dependency_limit {
            return Err(format!(
                "its dependencies returned {bytes} bytes, and a call gets at most {} (`dependency_limit`); make them return less, or depend on fewer calls",
                policy.dependency_limit
            ));
        }
        let total = self.dependency_bytes.saturating_add(bytes);
        if total > policy.dependency_total {
            return Err(format!(
                "its dependencies returned {bytes} bytes; with them, the calls of this run would get {total} bytes from dependencies, and at most {} are allowed (`dependency_total`); use fewer dependencies",
                policy.dependency_total
            ));
        }
        self.dependency_bytes = total;
        Ok(())
    }

    fn request(&self, call: CallIndex) -> Option<Request> {
        let entry = self.run_state.call(call)?;
        let tool = self.run_state.tool(call);
        let effect = tool.map(|tool| tool.spec.effect);
        let parent = entry.parent.map(CallIndex::new);
        let parent = parent.and_then(|call| self.run_state.call(call));
        Some(Request {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            effect: effect.unwrap_or_default(),
            parent: parent.map(|call| Arc::clone(&call.name)),
            arguments: self.run_state.arguments(call),
            held: entry.held.clone(),
            delegates: tool.is_some_and(|tool| tool.policy.delegates),
            meanings: tool.map(|tool| tool.meanings.clone()).unwrap_or_default(),
        })
    }

    fn wait_for(
        &mut self,
        call: CallIndex,
        doing: Doing,
        what: impl Future<Output = Done> + Send + 'static,
    ) {
        let handle = self.tasks.spawn(what);
        self.doing.insert(handle.id(), (call, doing));
        self.waiting.insert(call, handle);
    }

    fn admit(&mut self, call: CallIndex, by: AdmittedBy) {
        self.decided.push_back(Input::Admit {
            call,
            by,
            reason: None,
            always: false,
            arguments: None,
        });
    }

    fn decide(&mut self, call: CallIndex, decision: Result<Decision, BoxError>) {
        let admit = |reason: Option<String>, always, arguments| Input::Admit {
            call,
            by: AdmittedBy::Gate,
            reason: reason.map(Into::into),
            always,
            arguments,
        };
        let input = match decision {
            Ok(Decision::Allow) => admit(None, false, None),
            Ok(Decision::AllowBecause { reason }) => admit(Some(reason), false, None),
            Ok(Decision::Always) => {
                if let Some(entry) = self.run_state.call(call) {
                    self.always.insert(Arc::clone(&entry.name));
                }
                admit(None, true, None)
            }
            Ok(Decision::Edit { arguments }) => {
                let tool = self.run_state.tool(call);
                match tool.map(|tool| bind_arguments(&tool.spec, &arguments)) {
                    Some(Ok(arguments)) => {
                        let arguments = Arc::new(arguments);
                        match self.denied_by_rule(call, &arguments) {
                            Some(reason) => Input::Deny { call, reason },
                            None => admit(None, false, Some(arguments)),
                        }
                    }
                    Some(Err(problems)) => Input::Deny {
                        call,
                        reason: format!(
                            "the arguments were edited before the call ran, and are now invalid: {}",
                            CallError::Arguments(problems)
                        ),
                    },
                    None => return,
                }
            }
            Ok(Decision::Deny { reason }) => Input::Deny { call, reason },
            Err(error) => Input::Deny {
                call,
                reason: format!("the call could not be approved: {error}"),
            },
        };
        self.decided.push_back(input);
    }

    /// Returns the reason if a rule denies a call with these arguments. No one can override this.
    fn denied_by_rule(&self, call: CallIndex, arguments: &Arc<Arguments>) -> Option<String> {
        let mut request = self.request(call)?;
        request.arguments = Arc::clone(arguments);
        match self.config.shared.rules.verdict(&request) {
            Some(Verdict::Deny { reason }) => Some(reason),
            _ => None,
        }
    }

    pub(super) fn start(&mut self, call: CallIndex) {
        let dependencies = self.run_state.dependency_results(call);
        let shared = Arc::clone(&self.config.shared);
        let arguments = self.run_state.arguments_for_start(call);
        // The rules may have changed since the call was approved, before the run was interrupted.
        if call.index() < self.restored_calls
            && let Some(reason) = self.denied_by_rule(call, &arguments)
        {
            let ended = Ended::denied_after_all(&reason);
            return self.decided.push_back(Input::Ended { call, ended });
        }
        let log_failure = self.log_failure();
        let Some((entry, tool)) = self.run_state.call(call).zip(self.run_state.tool(call)) else {
            return;
        };
        if let Some(error) = log_failure.filter(|_| tool.spec.effect == Effect::Write) {
            let ended = Ended::not_recorded(&error);
            return self.decided.push_back(Input::Ended { call, ended });
        }
        let cancellation = CancellationToken::new();
        let context = Context {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            // A child token, so that the tool cannot cancel the call itself.
            cancellation: cancellation.child_token(),
            dependencies,
            grace: tool.policy.grace,
            shared,
            observed: Arc::default(),
        };
        // A tool that writes starts only when its start is logged.
        let barrier = self
            .config
            .recorder
            .as_ref()
            .filter(|_| tool.spec.effect == Effect::Write);
        let barrier = barrier.map(|recorder| (recorder.barrier(), self.last_line));
        let time_limit = tool.policy.timeout;
        let attempt = Attempt {
            code: tool.code.clone(),
            arguments,
            context,
            timeout: time_limit,
            transform: self.config.transform.clone(),
            parent: self.config.parent.clone(),
            number: entry.attempts,
        };
        let token = cancellation.clone();
        let mut started = Instant::now();
        let working = async move {
            if let Some((barrier, line)) = barrier {
                tokio::select! {
                    reached = barrier.reached(line) => if let Err(error) = reached {
                        return Done::ToolEnded(Ended::not_recorded(&error));
                    },
                    () = token.cancelled() => return Done::ToolEnded(Ended::not_started()),
                    // A disk that does not respond must not block the call forever.
                    () = sleep(time_limit) => {
                        let error = format!("the disk did not respond within {}", format_duration(time_limit));
                        return Done::ToolEnded(Ended::not_recorded(&error));
                    }
                }
                started = Instant::now();
            }
            Done::ToolEnded(attempt.run(started, token).await)
        };
        let handle = self.tasks.spawn(working);
        self.doing.insert(handle.id(), (call, Doing::Running));
        let running = Running {
            cancellation,
            was_cancelled: false,
            turn_timed_out: false,
        };
        self.running.insert(call, running);
    }

    pub(super) fn stop(&mut self, call: CallIndex) {
        // If the log failed, the tool continues: its end cannot be logged, but stopping it halfway would be worse.
        if self.log_failure().is_none()
            && let Some(running) = self.running.get_mut(&call)
        {
            running.stop();
        }
    }

    pub(super) fn joined(&mut self, joined: Result<(task::Id, Done), JoinError>) {
        let id = match &joined {
            Ok((id, _)) => *id,
            Err(error) => error.id(),
        };
        let Some((call, doing)) = self.doing.remove(&id) else {
            return;
        };
        if !matches!(doing, Doing::Running) {
            self.waiting.remove(&call);
        }
        match (joined, doing) {
            (Ok((_, Done::ToolEnded(ended))), _) => self.tool_ended(call, ended),
            (Ok((_, Done::Decided(decision))), _) => self.decide(call, decision),
            (Ok((_, Done::Recovered(recovery))), _) => self.recovered(call, recovery),
            (Ok((_, Done::RetryDue)), _) => self.apply(Input::Retry { call }),
            (Err(error), Doing::Running) => {
                let ended = self.panicked(call, panic_text(error));
                self.tool_ended(call, ended);
            }
            (Err(error), Doing::Deciding) if error.is_panic() => {
                self.decide(call, Err(panic_text(error).into()));
            }
            (Err(error), Doing::Recovering) if error.is_panic() => {
                self.recovered(call, Err(panic_text(error).into()));
            }
            // The task was aborted.
            (Err(_), Doing::Deciding | Doing::Recovering | Doing::Waiting) => {}
        }
    }

    /// Returns the end of a call whose tool panicked. The message is transformed like every text of a tool. If the transform
    /// panics too, the message is lost.
    fn panicked(&self, call: CallIndex, message: String) -> Ended {
        let (Some(transform), Some(entry)) = (&self.config.transform, self.run_state.call(call))
        else {
            return Ended::panicked(&message);
        };
        let changed = catch_unwind(AssertUnwindSafe(|| transform(&entry.name, message)));
        Ended::panicked(&changed.unwrap_or_else(|_| "it panicked".to_owned()))
    }

    fn tool_ended(&mut self, call: CallIndex, mut ended: Ended) {
        let running = self.running.remove(&call);
        let was_cancelled = running
            .as_ref()
            .is_some_and(|running| running.was_cancelled);
        if ended.outcome == Outcome::Cancelled
            && running.is_some_and(|running| running.turn_timed_out)
        {
            self.mark_timed_out(&mut ended);
        } else if ended.outcome == Outcome::Cancelled
            && let Some(reason) = self.own_cancellation(call)
        {
            ended.error = Some(reason);
        }
        if ended.outcome == Outcome::Error
            && !was_cancelled
            && let Some(wait) = self.wait_before_retry(call)
        {
            let error = ended.error.unwrap_or_default().into();
            self.apply(Input::BackOff { call, error, wait });
            return self.wait_to_retry(call, wait);
        }
        if let Some(entry) = self.run_state.call(call) {
            let whole = &self.config.shared.whole_results;
            whole.keep(&entry.id, ended.output.as_ref());
        }
        self.apply(Input::Ended { call, ended });
    }

    /// Returns the error of a running call that was cancelled on its own.
    fn own_cancellation(&self, call: CallIndex) -> Option<String> {
        let reason = self.run_state.call(call)?.cancelled.as_ref()?;
        Some(format!("{reason} while the call was running"))
    }

    /// Returns the delay before a failed call is retried, or `None` if it is not retried.
    fn wait_before_retry(&mut self, call: CallIndex) -> Option<Duration> {
        let attempts = self.run_state.call(call)?.attempts;
        let tool = self.run_state.tool(call)?;
        let retry = tool.policy.retry?;
        let may_repeat = tool.spec.effect != Effect::Write;
        if !may_repeat || attempts >= retry.attempts || self.run_state.is_cancelled(call) {
            return None;
        }
        let (hasher, count) = &mut self.jitter;
        *count += 1;
        let drawn = u32::try_from(hasher.hash_one(*count) >> 32).unwrap_or_default();
        Some(retry.wait(attempts, f64::from(drawn) / f64::from(u32::MAX)))
    }

    fn wait_to_retry(&mut self, call: CallIndex, wait: Duration) {
        if self.run_state.state(call) == Some(State::BackOff) {
            self.wait_for(call, Doing::Waiting, async move {
                sleep(wait).await;
                Done::RetryDue
            });
        }
    }
}

/// Resuming a run (`spec/log.md`, "Resuming a run").
impl Driver {
    pub(super) fn resume(&mut self, replayed: Replayed) {
        let now = Instant::now();
        self.begun = now.checked_sub(replayed.at).unwrap_or(now);
        self.deadline = self.run_state.opened().and_then(|opened| {
            let time = self.run_state.policy.turn_timeout?;
            self.begun.checked_add(opened)?.checked_add(time)
        });
        if self.run_state.turn_timed_out {
            self.deadline = None;
        }
        self.restored_calls = self.run_state.appeared();
        self.dependency_bytes = self.run_state.total_dependency_bytes();
        let unstarted = replayed.unstarted();
        self.always = replayed.always;
        for result in replayed.results {
            let whole = &self.config.shared.whole_results;
            whole.keep(&result.id, result.output.as_ref());
        }
        let at = self.begun.elapsed();
        self.publish(RunEvent::Resumed(Resumed { at }));
        for event in replayed.pending {
            self.publish(event);
        }
        let continuing = self.run_state.continuing(&unstarted);
        let ends = |call: &CallIndex| !continuing.contains(&call.get());
        if self.config.cancels_unfinished && self.run_state.has_unended() {
            let reason: Arc<str> = "the conversation was interrupted".into();
            if continuing.is_empty() {
                let timed_out = false;
                self.apply(Input::Cancel { reason, timed_out });
            } else {
                for call in self.run_state.unended().into_iter().filter(ends) {
                    let reason = Arc::clone(&reason);
                    self.apply(Input::CancelCall { call, reason });
                }
            }
        }
        for call in self.run_state.children().into_iter().filter(ends) {
            let reason = "its parent call was interrupted".into();
            self.apply(Input::CancelCall { call, reason });
        }
        for call in self.run_state.calls_in(State::Ready) {
            self.ask(call);
        }
        let were_running = self.run_state.calls_in(State::Running);
        let were_waiting = self.run_state.calls_in(State::BackOff);
        self.run_state.set_aside(&unstarted, at);
        let aside = self.run_state.calls_aside();
        for call in were_running {
            if aside.contains(&call) {
                self.recover(call);
            } else if self.run_state.is_cancelled(call) {
                let ended = self.cancelled_end(call);
                self.decided.push_back(Input::Ended { call, ended });
            } else if unstarted.contains(&call.get()) {
                self.start(call);
            } else {
                self.decided.push_back(Input::Retry { call });
            }
        }
        for call in were_waiting {
            if aside.contains(&call) {
                self.recover(call);
            } else if let Some(entry) = self.run_state.call(call) {
                self.wait_to_retry(call, entry.retry_at.saturating_sub(at));
            }
        }
        self.run_commands();
    }

    /// Returns the end of a call that was being stopped when the run was interrupted.
    fn cancelled_end(&self, call: CallIndex) -> Ended {
        let mut ended = Ended::cancelled(None);
        if let Some(reason) = self.own_cancellation(call) {
            ended.error = Some(reason);
        } else if self.run_state.turn_timed_out {
            self.mark_timed_out(&mut ended);
        }
        ended
    }

    /// Changes the end of a call that was stopped because its turn timed out.
    fn mark_timed_out(&self, ended: &mut Ended) {
        let time = self.run_state.policy.turn_timeout.unwrap_or_default();
        ended.outcome = Outcome::Error;
        ended.error = Some(format!(
            "timed out: the turn exceeded its time limit of {}",
            format_duration(time)
        ));
    }

    /// Asks the gate about the outcome of an interrupted call of a tool that writes.
    fn recover(&mut self, call: CallIndex) {
        let Some(request) = self.request(call) else {
            return;
        };
        let Some(gate) = self.config.gate.clone() else {
            return self.recovered(call, Ok(Recovery::Unknown));
        };
        let time = self.run_state.policy.gate_timeout;
        let deciding = async move {
            let recovery = timeout(time, gate.recover(&request)).await;
            Done::Recovered(recovery.unwrap_or_else(|_| Err(no_answer(time))))
        };
        self.recovering.insert(call);
        self.wait_for(call, Doing::Recovering, deciding);
    }

    fn recovered(&mut self, call: CallIndex, recovery: Result<Recovery, BoxError>) {
        self.recovering.remove(&call);
        let ended = match recovery {
            // A call that was cancelled before the interruption does not start again.
            Ok(Recovery::RunAgain) if self.run_state.is_cancelled(call) => self.cancelled_end(call),
            Ok(Recovery::RunAgain) => {
                return self.decided.push_back(Input::Retry { call });
            }
            Ok(Recovery::Done { output }) => Ended::confirmed_done(output),
            Ok(Recovery::NotDone { reason }) => Ended::confirmed_not_done(reason),
            Ok(Recovery::Unknown) => return self.outcome_unknown(call, None),
            Err(error) => return self.outcome_unknown(call, Some(error)),
        };
        self.decided.push_back(Input::Ended { call, ended });
    }

    /// Handles a call with unknown outcome: it ends last in its turn. A submitted call ends at once: nothing follows from its
    /// end, and the program may wait for its result before the turn continues.
    fn outcome_unknown(&mut self, call: CallIndex, error: Option<BoxError>) {
        if (self.run_state.call(call)).is_some_and(|entry| entry.is_submitted) {
            self.end_as_unknown(call, error.as_ref());
        } else {
            self.unknown.push((call, error));
        }
    }

    /// Ends the calls with unknown outcome if nothing else is pending in the turn. Returns whether it did.
    pub(super) fn end_unknown_if_idle(&mut self) -> bool {
        if self.unknown.is_empty() || !self.tasks.is_empty() || self.run_state.is_open() {
            return false;
        }
        self.end_unknown();
        true
    }

    pub(super) fn end_unknown(&mut self) {
        for (call, error) in std::mem::take(&mut self.unknown) {
            self.end_as_unknown(call, error.as_ref());
        }
    }

    /// Ends a call as `unknown`.
    pub(super) fn end_as_unknown(&mut self, call: CallIndex, error: Option<&BoxError>) {
        // A parent that delegates continues with this outcome.
        let parent = self.run_state.call(call).and_then(|entry| entry.parent);
        let parent = parent.and_then(|parent| self.run_state.tool(CallIndex::new(parent)));
        let is_awaited = parent.is_some_and(|tool| tool.policy.delegates);
        if !is_awaited && !self.run_state.is_followed(call) {
            self.unresolved.insert(call.get());
        }
        let ended = Ended::unknown(error);
        self.apply(Input::Ended { call, ended });
    }
}

fn no_answer(time: Duration) -> BoxError {
    format!("no answer within {}", format_duration(time)).into()
}

fn panic_text(error: JoinError) -> String {
    let Ok(payload) = error.try_into_panic() else {
        return "it was aborted".to_owned();
    };
    if let Some(text) = payload.downcast_ref::<&str>() {
        (*text).to_owned()
    } else if let Some(text) = payload.downcast_ref::<String>() {
        text.clone()
    } else {
        "it panicked".to_owned()
    }
}
