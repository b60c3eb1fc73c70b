//! What is done for one call: ask, start, stop, try again, settle.

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
use crate::context::Context;
use crate::event::{AdmittedBy, Resumed, RunEvent};
use crate::gate::{Decision, ReadOnly, Recovery};
use crate::replay::Replayed;
use crate::request::Request;
use crate::rules::Verdict;
use crate::run_state::Input;
use crate::tool_error::BoxError;
use crate::work::{Ended, Work, in_words};

impl Driver {
    /// Finds out whether a call may run: a rule, an earlier answer for all calls of the tool, or the gate.
    pub(super) fn ask(&mut self, call: CallIndex) {
        if let Err(reason) = self.pass_on(call) {
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
        let asking = async move {
            let decision = timeout(time, gate.decide(&request)).await;
            Done::Asked(decision.unwrap_or_else(|_| Err(nobody_answered(time))))
        };
        self.wait_for(call, Doing::Asking, asking);
    }

    /// Counts what the calls that a call depends on pass on to it.
    ///
    /// # Errors
    /// Why it is too much.
    fn pass_on(&mut self, call: CallIndex) -> Result<(), String> {
        let bytes = self.run_state.passed_on(call);
        let policy = &self.run_state.policy;
        if bytes > policy.dependency_limit {
            return Err(format!(
                "its dependencies returned {bytes} bytes, and a call gets at most {} (`dependency_limit`); make them return less, or depend on fewer calls",
                policy.dependency_limit
            ));
        }
        let total = self.passed_on.saturating_add(bytes);
        if total > policy.dependency_total {
            return Err(format!(
                "its dependencies returned {bytes} bytes; with them, the calls of this run would get {total} bytes from dependencies, and at most {} are allowed (`dependency_total`); use fewer dependencies",
                policy.dependency_total
            ));
        }
        self.passed_on = total;
        Ok(())
    }

    fn request(&self, call: CallIndex) -> Option<Request> {
        let entry = self.run_state.call(call)?;
        let tool = self.run_state.tool(call);
        let effect = tool.map(|tool| tool.spec.effect);
        Some(Request {
            call: call.get(),
            id: Arc::clone(&entry.id),
            name: Arc::clone(&entry.name),
            effect: effect.unwrap_or_default(),
            arguments: self.run_state.arguments(call),
            held: entry.held.clone(),
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
            always: false,
            arguments: None,
        });
    }

    fn decide(&mut self, call: CallIndex, decision: Result<Decision, BoxError>) {
        let admit = |always, arguments: Option<Arc<Arguments>>| Input::Admit {
            call,
            by: AdmittedBy::Gate,
            always,
            arguments,
        };
        let input = match decision {
            Ok(Decision::Allow) => admit(false, None),
            Ok(Decision::Always) => {
                if let Some(entry) = self.run_state.call(call) {
                    self.always.insert(Arc::clone(&entry.name));
                }
                admit(true, None)
            }
            Ok(Decision::Edit { arguments }) => {
                let tool = self.run_state.tool(call);
                match tool.map(|tool| bind_arguments(&tool.spec, &arguments)) {
                    Some(Ok(arguments)) => {
                        let arguments = Arc::new(arguments);
                        match self.denied_by_rule(call, &arguments) {
                            Some(reason) => Input::Deny { call, reason },
                            None => admit(false, Some(arguments)),
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

    /// Why a rule denies a call with these arguments, if one does. What a rule denies nobody can make right.
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
        // What was let pass before a crash may be denied now: a rule may be why the run was stopped.
        if call.index() < self.taken_up
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
            // A child of it: what the tool does with it concerns the tool alone.
            cancellation: cancellation.child_token(),
            dependencies,
            grace: tool.policy.grace,
            shared,
            observed: Arc::default(),
        };
        // What may change something must not be done without a trace.
        let barrier = self
            .config
            .recorder
            .as_ref()
            .filter(|_| tool.spec.effect == Effect::Write);
        let barrier = barrier.map(|recorder| (recorder.barrier(), self.last_line));
        let patience = tool.policy.timeout;
        let work = Work {
            code: tool.code.clone(),
            arguments,
            context,
            timeout: patience,
            transform: self.config.transform.clone(),
            parent: self.config.parent.clone(),
            attempt: entry.attempts,
        };
        let token = cancellation.clone();
        let mut started = Instant::now();
        let working = async move {
            if let Some((barrier, line)) = barrier {
                tokio::select! {
                    reached = barrier.reached(line) => if let Err(error) = reached {
                        return Done::Worked(Ended::not_recorded(&error));
                    },
                    () = token.cancelled() => return Done::Worked(Ended::not_started()),
                    // A disk that hangs must not hold the call for ever.
                    () = sleep(patience) => {
                        let error = format!("the disk did not respond within {}", in_words(patience));
                        return Done::Worked(Ended::not_recorded(&error));
                    }
                }
                started = Instant::now();
            }
            Done::Worked(work.run(started, token).await)
        };
        let handle = self.tasks.spawn(working);
        self.doing.insert(handle.id(), (call, Doing::Working));
        let running = Running {
            cancellation,
            was_stopped: false,
            is_overtime: false,
        };
        self.running.insert(call, running);
    }

    pub(super) fn stop(&mut self, call: CallIndex) {
        // Without a log it is not stopped either: what it does cannot be written down, but half of it would be worse.
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
        if !matches!(doing, Doing::Working) {
            self.waiting.remove(&call);
        }
        match (joined, doing) {
            (Ok((_, Done::Worked(ended))), _) => self.worked(call, ended),
            (Ok((_, Done::Asked(decision))), _) => self.decide(call, decision),
            (Ok((_, Done::Settled(settlement))), _) => self.settled(call, settlement),
            (Ok((_, Done::Rested)), _) => self.give(Input::Retry { call }),
            (Err(error), Doing::Working) => {
                let ended = self.broken_down(call, panic_text(error));
                self.worked(call, ended);
            }
            (Err(error), Doing::Asking) if error.is_panic() => {
                self.decide(call, Err(panic_text(error).into()));
            }
            (Err(error), Doing::Settling) if error.is_panic() => {
                self.settled(call, Err(panic_text(error).into()));
            }
            // Nobody waits for it any more.
            (Err(_), Doing::Asking | Doing::Settling | Doing::Resting) => {}
        }
    }

    /// How a call ends whose tool has panicked. What a panic says is changed like all that tools say; if that panics too,
    /// it is lost.
    fn broken_down(&self, call: CallIndex, said: String) -> Ended {
        let (Some(transform), Some(entry)) = (&self.config.transform, self.run_state.call(call))
        else {
            return Ended::panicked(&said);
        };
        let changed = catch_unwind(AssertUnwindSafe(|| transform(&entry.name, said)));
        Ended::panicked(&changed.unwrap_or_else(|_| "it panicked".to_owned()))
    }

    fn worked(&mut self, call: CallIndex, mut ended: Ended) {
        let running = self.running.remove(&call);
        let was_stopped = running.as_ref().is_some_and(|running| running.was_stopped);
        if ended.outcome == Outcome::Cancelled && running.is_some_and(|running| running.is_overtime)
        {
            self.overtime(&mut ended);
        } else if ended.outcome == Outcome::Cancelled
            && let Some(reason) = self.cancelled_alone(call)
        {
            ended.error = Some(reason);
        }
        if ended.outcome == Outcome::Error
            && !was_stopped
            && let Some(wait) = self.wait_before_retry(call)
        {
            let error = ended.error.unwrap_or_default().into();
            self.give(Input::BackOff { call, error, wait });
            return self.rest(call, wait);
        }
        if let Some(entry) = self.run_state.call(call) {
            let whole = &self.config.shared.whole_results;
            whole.keep(&entry.id, ended.output.as_ref());
        }
        self.give(Input::Ended { call, ended });
    }

    /// What is said of a call that was cancelled alone while it was running.
    fn cancelled_alone(&self, call: CallIndex) -> Option<String> {
        let reason = self.run_state.call(call)?.cancelled.as_ref()?;
        Some(format!("{reason} while the call was running"))
    }

    /// How long a call that has failed waits before it is tried again; `None` if it is not.
    fn wait_before_retry(&mut self, call: CallIndex) -> Option<Duration> {
        let attempts = self.run_state.call(call)?.attempts;
        let tool = self.run_state.tool(call)?;
        let retry = tool.policy.retry?;
        let may_repeat = tool.spec.effect != Effect::Write;
        if !may_repeat || attempts >= retry.attempts || self.run_state.is_called_off(call) {
            return None;
        }
        let (hasher, count) = &mut self.chances;
        *count += 1;
        let drawn = u32::try_from(hasher.hash_one(*count) >> 32).unwrap_or_default();
        Some(retry.wait(attempts, f64::from(drawn) / f64::from(u32::MAX)))
    }

    fn rest(&mut self, call: CallIndex, wait: Duration) {
        if self.run_state.state(call) == Some(State::BackOff) {
            self.wait_for(call, Doing::Resting, async move {
                sleep(wait).await;
                Done::Rested
            });
        }
    }
}

/// What is done when a run is taken up again (`spec/log.md`, "Resuming a run").
impl Driver {
    pub(super) fn take_up(&mut self, replayed: Replayed) {
        let now = Instant::now();
        self.begun = now.checked_sub(replayed.at).unwrap_or(now);
        self.deadline = self.run_state.opened().and_then(|opened| {
            let time = self.run_state.policy.turn_timeout?;
            self.begun.checked_add(opened)?.checked_add(time)
        });
        if self.run_state.is_overtime {
            self.deadline = None;
        }
        self.taken_up = self.run_state.appeared();
        self.passed_on = self.run_state.passed_on_so_far();
        let fresh = replayed.fresh();
        self.always = replayed.always;
        for result in replayed.whole {
            let whole = &self.config.shared.whole_results;
            whole.keep(&result.id, result.output.as_ref());
        }
        let at = self.begun.elapsed();
        self.publish(RunEvent::Resumed(Resumed { at }));
        for event in replayed.untold {
            self.publish(event);
        }
        if self.config.cancels_unfinished && self.run_state.has_unended() {
            self.give(Input::Cancel {
                reason: "the conversation was interrupted".into(),
                timed_out: false,
            });
        }
        for call in self.run_state.children() {
            let reason = "its parent call was interrupted".into();
            self.give(Input::CancelCall { call, reason });
        }
        for call in self.run_state.calls_in(State::Ready) {
            self.ask(call);
        }
        let were_running = self.run_state.calls_in(State::Running);
        let were_waiting = self.run_state.calls_in(State::BackOff);
        self.run_state.set_aside(&fresh, at);
        let aside = self.run_state.calls_aside();
        for call in were_running {
            if aside.contains(&call) {
                self.settle(call);
            } else if self.run_state.is_called_off(call) {
                let ended = self.called_off(call);
                self.decided.push_back(Input::Ended { call, ended });
            } else if fresh.contains(&call.get()) {
                self.start(call);
            } else {
                self.decided.push_back(Input::Retry { call });
            }
        }
        for call in were_waiting {
            if aside.contains(&call) {
                self.settle(call);
            } else if let Some(entry) = self.run_state.call(call) {
                self.rest(call, entry.retry_at.saturating_sub(at));
            }
        }
        self.carry_out();
    }

    /// How a call ends that was being stopped when the run was cut off.
    fn called_off(&self, call: CallIndex) -> Ended {
        let mut ended = Ended::cancelled(None);
        if let Some(reason) = self.cancelled_alone(call) {
            ended.error = Some(reason);
        } else if self.run_state.is_overtime {
            self.overtime(&mut ended);
        }
        ended
    }

    /// Says of a call that it was stopped because the time of its turn was over.
    fn overtime(&self, ended: &mut Ended) {
        let time = self.run_state.policy.turn_timeout.unwrap_or_default();
        ended.outcome = Outcome::Error;
        ended.error = Some(format!(
            "timed out: the turn exceeded its time limit of {}",
            in_words(time)
        ));
    }

    /// Asks what became of a call that may have changed something.
    fn settle(&mut self, call: CallIndex) {
        let Some(request) = self.request(call) else {
            return;
        };
        let Some(gate) = self.config.gate.clone() else {
            return self.settled(call, Ok(Recovery::Unknown));
        };
        let time = self.run_state.policy.gate_timeout;
        let asking = async move {
            let settlement = timeout(time, gate.recover(&request)).await;
            Done::Settled(settlement.unwrap_or_else(|_| Err(nobody_answered(time))))
        };
        self.settling.insert(call);
        self.wait_for(call, Doing::Settling, asking);
    }

    fn settled(&mut self, call: CallIndex, settlement: Result<Recovery, BoxError>) {
        self.settling.remove(&call);
        let ended = match settlement {
            // What was called off before the crash is not started again.
            Ok(Recovery::RunAgain) if self.run_state.is_called_off(call) => self.called_off(call),
            Ok(Recovery::RunAgain) => {
                return self.decided.push_back(Input::Retry { call });
            }
            Ok(Recovery::Done { output }) => Ended::said_to_be_done(output),
            Ok(Recovery::NotDone { reason }) => Ended::said_not_to_be_done(reason),
            Ok(Recovery::Unknown) => return self.nobody_knows(call, None),
            Err(error) => return self.nobody_knows(call, Some(error)),
        };
        self.decided.push_back(Input::Ended { call, ended });
    }

    /// A call of which nobody knows what became ends last in its turn; one that was submitted at once: nothing follows from
    /// its end, and whoever has submitted it may wait for that before the turn goes on.
    fn nobody_knows(&mut self, call: CallIndex, error: Option<BoxError>) {
        if (self.run_state.call(call)).is_some_and(|entry| entry.is_submitted) {
            self.leave_open(call, error.as_ref());
        } else {
            self.unknown.push((call, error));
        }
    }

    /// Ends the calls of which nobody knows what became, when nothing else goes on in the turn. Returns whether it did.
    pub(super) fn give_up_waiting(&mut self) -> bool {
        if self.unknown.is_empty() || !self.tasks.is_empty() || self.run_state.is_open() {
            return false;
        }
        self.leave_unknown_open();
        true
    }

    pub(super) fn leave_unknown_open(&mut self) {
        for (call, error) in std::mem::take(&mut self.unknown) {
            self.leave_open(call, error.as_ref());
        }
    }

    /// Nobody knows what became of the call.
    pub(super) fn leave_open(&mut self, call: CallIndex, error: Option<&BoxError>) {
        if !self.run_state.is_followed(call) {
            self.unsettled.insert(call.get());
        }
        let ended = Ended::unknown(error);
        self.give(Input::Ended { call, ended });
    }
}

fn nobody_answered(time: Duration) -> BoxError {
    format!("no answer within {}", in_words(time)).into()
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
