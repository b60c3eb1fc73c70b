//! The actions for one call: decide, start, stop, retry, recover.

use std::hash::BuildHasher as _;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::Effect;
use plaincall_plan::{CallIndex, Outcome, State, format_duration};
use tokio::task::{self, JoinError};
use tokio::time::{Instant, sleep, timeout};
use tokio_util::sync::CancellationToken;

use super::{Doing, Done, Driver, Running};
use crate::attempt::{Attempt, Ended};
use crate::context::Context;
use crate::event::{Resumed, RunEvent};
use crate::gate::{Decision, ReadOnly, Recovery};
use crate::replay::Replayed;
use crate::run_state::{Approval, Input, Recovered};
use crate::tool_error::BoxError;

impl Driver {
    /// Decides whether a call may run: by a rule, by an earlier approval of all calls of the tool, or by the gate.
    pub(super) fn ask(&mut self, call: CallIndex) {
        let approval = self.run_state.approval(call, &self.config.shared.rules);
        let (request, must_ask) = match approval {
            Some(Approval::Decided(input)) => return self.decided.push_back(input),
            Some(Approval::Gate { request, must_ask }) => (request, must_ask),
            None => return,
        };
        let Some(gate) = &self.config.gate else {
            let decision = if must_ask && request.held.is_none() {
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

    fn decide(&mut self, call: CallIndex, decision: Result<Decision, BoxError>) {
        let rules = &self.config.shared.rules;
        let input = self.run_state.decided(call, decision, rules);
        self.decided.extend(input);
    }

    pub(super) fn start(&mut self, call: CallIndex) {
        let dependencies = self.run_state.dependency_results(call);
        let shared = Arc::clone(&self.config.shared);
        let arguments = self.run_state.arguments_for_start(call);
        // The rules may have changed since the call was approved, before the run was interrupted.
        if call.index() < self.restored_calls
            && let Some(reason) =
                self.run_state
                    .denied_by_rule(call, &arguments, &self.config.shared.rules)
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
            idempotency_key: None,
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
        let turn_timed_out = running.is_some_and(|running| running.turn_timed_out);
        self.run_state
            .explain_cancellation(call, turn_timed_out, &mut ended);
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

    /// Returns the delay before a failed call is retried, or `None` if it is not retried.
    fn wait_before_retry(&mut self, call: CallIndex) -> Option<Duration> {
        let (hasher, count) = &mut self.jitter;
        self.run_state.wait_before_retry(call, || {
            *count += 1;
            let drawn = u32::try_from(hasher.hash_one(*count) >> 32).unwrap_or_default();
            f64::from(drawn) / f64::from(u32::MAX)
        })
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
        self.run_state.count_restored();
        let unstarted = replayed.unstarted();
        for result in replayed.results {
            let whole = &self.config.shared.whole_results;
            whole.keep(&result.id, result.output.as_ref());
        }
        let at = self.begun.elapsed();
        self.publish(RunEvent::Resumed(Resumed {
            tools: replayed.changed_tools,
            ..Resumed::everything(at)
        }));
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
                let ended = self.run_state.cancelled_end(call);
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

    /// Asks the gate about the outcome of an interrupted call of a tool that writes.
    fn recover(&mut self, call: CallIndex) {
        let Some(request) = self.run_state.request(call) else {
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
        match self.run_state.recovered(call, recovery) {
            Recovered::Decided(input) => self.decided.push_back(input),
            Recovered::Unknown(error) => self.outcome_unknown(call, error),
        }
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

/// Returns the text of a panic.
pub(crate) fn panic_text(error: JoinError) -> String {
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
