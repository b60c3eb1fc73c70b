//! Decisions about a call: by rules and limits, by the answer of a gate, about a retry, and after a crash.

use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, CallError, Effect, bind_arguments};
use plaincall_plan::{CallFailure, CallIndex, Outcome, format_duration};

use super::{Input, RunState};
use crate::attempt::Ended;
use crate::event::AdmittedBy;
use crate::gate::{Decision, Recovery};
use crate::request::Request;
use crate::rules::{Rules, Verdict};
use crate::tool_error::BoxError;

/// The decision about a call that is ready.
pub(crate) enum Approval {
    Decided(Input),
    /// The gate decides.
    Gate {
        request: Box<Request>,
        /// Whether a rule requires it.
        must_ask: bool,
    },
}

/// The consequence of the answer about the outcome of an interrupted call.
pub(crate) enum Recovered {
    Decided(Input),
    Unknown(Option<BoxError>),
}

impl RunState {
    /// Decides about a call that is ready: by a limit, a rule or an earlier approval of all calls of the tool. Otherwise the
    /// gate must be asked.
    pub(crate) fn approval(&mut self, call: CallIndex, rules: &Rules) -> Option<Approval> {
        if let Err(reason) = self.count_dependency_bytes(call) {
            return Some(Approval::Decided(Input::Deny { call, reason }));
        }
        let request = self.request(call)?;
        let verdict = rules.verdict(&request);
        let must_ask = verdict == Some(Verdict::Ask);
        let is_held = request.held.is_some();
        Some(match verdict {
            Some(Verdict::Allow) if !is_held => Approval::Decided(admitted(call, AdmittedBy::Rule)),
            Some(Verdict::Deny { reason }) => Approval::Decided(Input::Deny { call, reason }),
            Some(Verdict::Allow | Verdict::Ask) | None => {
                if !must_ask && !is_held && self.always.contains(&request.name) {
                    Approval::Decided(admitted(call, AdmittedBy::Always))
                } else {
                    let request = Box::new(request);
                    Approval::Gate { request, must_ask }
                }
            }
        })
    }

    /// Counts the results that a call gets from its dependencies.
    ///
    /// # Errors
    /// Returns the reason if they exceed a limit.
    fn count_dependency_bytes(&mut self, call: CallIndex) -> Result<(), String> {
        let bytes = self.dependency_bytes(call);
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

    pub(crate) fn request(&self, call: CallIndex) -> Option<Request> {
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

    /// Returns the input for the answer of a gate.
    pub(crate) fn decided(
        &self,
        call: CallIndex,
        decision: Result<Decision, BoxError>,
        rules: &Rules,
    ) -> Option<Input> {
        let admit = |reason: Option<String>, always, arguments| Input::Admit {
            call,
            by: AdmittedBy::Gate,
            reason: reason.map(Into::into),
            always,
            arguments,
        };
        Some(match decision {
            Ok(Decision::Allow) => admit(None, false, None),
            Ok(Decision::AllowBecause { reason }) => admit(Some(reason), false, None),
            Ok(Decision::Always) => admit(None, true, None),
            Ok(Decision::Edit { arguments }) => {
                match bind_arguments(&self.tool(call)?.spec, &arguments) {
                    Ok(arguments) => {
                        let arguments = Arc::new(arguments);
                        match self.denied_by_rule(call, &arguments, rules) {
                            Some(reason) => Input::Deny { call, reason },
                            None => admit(None, false, Some(arguments)),
                        }
                    }
                    Err(problems) => Input::Deny {
                        call,
                        reason: format!(
                            "the arguments were edited before the call ran, and are now invalid: {}",
                            CallError::Arguments(problems)
                        ),
                    },
                }
            }
            Ok(Decision::Deny { reason }) => Input::Deny { call, reason },
            Err(error) => Input::Deny {
                call,
                reason: CallFailure::Approval(&error.to_string()).to_string(),
            },
        })
    }

    /// Returns the reason if a rule denies a call with these arguments. No one can override this.
    pub(crate) fn denied_by_rule(
        &self,
        call: CallIndex,
        arguments: &Arc<Arguments>,
        rules: &Rules,
    ) -> Option<String> {
        let mut request = self.request(call)?;
        request.arguments = Arc::clone(arguments);
        match rules.verdict(&request) {
            Some(Verdict::Deny { reason }) => Some(reason),
            _ => None,
        }
    }

    /// Returns the delay before a failed call is retried, or `None` if it is not retried. `chance` is from 0 to 1.
    pub(crate) fn wait_before_retry(
        &self,
        call: CallIndex,
        chance: impl FnOnce() -> f64,
    ) -> Option<Duration> {
        let attempts = self.call(call)?.attempts;
        let tool = self.tool(call)?;
        let retry = tool.policy.retry?;
        let may_repeat = tool.spec.effect != Effect::Write;
        if !may_repeat || attempts >= retry.attempts || self.is_cancelled(call) {
            return None;
        }
        Some(retry.wait(attempts, chance()))
    }

    /// Returns what follows from the answer about the outcome of an interrupted call.
    pub(crate) fn recovered(
        &self,
        call: CallIndex,
        recovery: Result<Recovery, BoxError>,
    ) -> Recovered {
        let ended = match recovery {
            // A call that was cancelled before the interruption does not start again.
            Ok(Recovery::RunAgain) if self.is_cancelled(call) => self.cancelled_end(call),
            Ok(Recovery::RunAgain) => return Recovered::Decided(Input::Retry { call }),
            Ok(Recovery::Done { output }) => Ended::confirmed_done(output),
            Ok(Recovery::NotDone { reason }) => Ended::confirmed_not_done(reason),
            Ok(Recovery::Unknown) => return Recovered::Unknown(None),
            Err(error) => return Recovered::Unknown(Some(error)),
        };
        Recovered::Decided(Input::Ended { call, ended })
    }

    /// Returns the end of a call that was being stopped when the run was interrupted.
    pub(crate) fn cancelled_end(&self, call: CallIndex) -> Ended {
        let mut ended = Ended::cancelled(None);
        let is_own = (self.call(call)).is_some_and(|entry| entry.cancelled.is_some());
        self.explain_cancellation(call, self.turn_timed_out && !is_own, &mut ended);
        ended
    }

    /// Changes the end of a running call that was cancelled: because its turn timed out, or on its own.
    pub(crate) fn explain_cancellation(
        &self,
        call: CallIndex,
        turn_timed_out: bool,
        ended: &mut Ended,
    ) {
        if ended.outcome != Outcome::Cancelled {
            return;
        }
        let own = self.call(call).and_then(|entry| entry.cancelled.as_ref());
        if turn_timed_out {
            let time = self.policy.turn_timeout.unwrap_or_default();
            ended.outcome = Outcome::Error;
            ended.error = Some(format!(
                "timed out: the turn exceeded its time limit of {}",
                format_duration(time)
            ));
        } else if let Some(reason) = own {
            ended.error = Some(format!("{reason} while the call was running"));
        }
    }
}

fn admitted(call: CallIndex, by: AdmittedBy) -> Input {
    Input::Admit {
        call,
        by,
        reason: None,
        always: false,
        arguments: None,
    }
}
