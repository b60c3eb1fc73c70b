//! Runs a tool once, within its time limit.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plaincall_plan::{CallFailure, Outcome};
use plaincall_reply::{Untrusted, untrusted::in_record};
use plaincall_tool::Arguments;
use serde::{Deserialize, Serialize};
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::command::invocation::MARGIN;
use crate::context::{Context, Observed};
use crate::tool::Code;
use crate::tool_error::{BoxError, Failure};
use crate::trace::{Parent, ToolSpan};

pub(crate) struct Attempt {
    pub(crate) code: Code,
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) context: Context,
    pub(crate) timeout: Duration,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) parent: Parent,
    pub(crate) number: u32,
}

/// Transforms a text of a tool, given the name of the tool ([`RunBuilder::transform`](crate::RunBuilder::transform)).
pub(crate) type Transform = dyn Fn(&str, String) -> String + Send + Sync;

/// How a started call ended.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) output: Option<Arc<str>>,
    pub(crate) error: Option<String>,
    pub(crate) note: Option<Arc<str>>,
    /// The part of the untrusted text that the tool observed, beside its output, from which a call could be copied.
    #[serde(with = "in_record", default)]
    pub(crate) untrusted: Option<Arc<Untrusted<'static>>>,
}

/// The reason to stop a tool.
enum Stop {
    TimedOut,
    Cancelled,
}

impl Attempt {
    /// Runs the tool until it ends, times out or `token` is cancelled. The time limit counts from `started`, so it does not
    /// depend on when the task is scheduled.
    pub(crate) async fn run(mut self, started: Instant, token: CancellationToken) -> Ended {
        let transform = self.transform.take();
        let name = Arc::clone(&self.context.name);
        let observed = Arc::clone(&self.context.observed);
        // The transform runs within the span, so if it panics, the call fails.
        let mut span = ToolSpan::new(&self.parent, &self.context, self.number);
        let mut ended = self.run_tool(started, token, &mut span).await;
        let (mut untrusted, note) = Observed::take(&observed);
        ended.note = ended.note.or(note.map(Arc::from));
        if let Some(transform) = transform {
            let changed = ended
                .output
                .map(|text| transform(&name, text.as_ref().to_owned()));
            ended.output = changed.map(Arc::from);
            ended.error = ended.error.map(|text| transform(&name, text));
            untrusted = untrusted.map(|text| transform(&name, text));
        }
        ended.untrusted = untrusted.map(|text| Arc::new(Untrusted::new(text)));
        span.ended(ended.outcome);
        ended
    }

    async fn run_tool(
        self,
        started: Instant,
        token: CancellationToken,
        span: &mut ToolSpan,
    ) -> Ended {
        let arguments = Arc::unwrap_or_clone(self.arguments);
        let margin = self.code.command().map_or(Duration::ZERO, |_| MARGIN);
        let grace = self.context.grace.saturating_add(margin);
        let starting = async { self.code.start(arguments, self.context).await };
        let mut work = pin!(span.within(starting));
        let deadline = started.checked_add(self.timeout);
        let stop = tokio::select! {
            // A tool that ends at the last moment has ended.
            biased;
            result = &mut work => {
                // The tool may have observed the cancellation before this task did.
                if result.is_ok() || !token.is_cancelled() {
                    return Ended::of(result);
                }
                return Ended::cancelled(Some(result));
            }
            () = token.cancelled() => Stop::Cancelled,
            () = sleep_until(deadline.unwrap_or(started)), if deadline.is_some() => Stop::TimedOut,
        };
        token.cancel();
        let last = timeout(grace, work).await.ok();
        match (stop, last) {
            (Stop::Cancelled, Some(Ok(output))) => Ended::of(Ok(output)),
            (Stop::Cancelled, last) => Ended::cancelled(last),
            (Stop::TimedOut, last) => {
                span.timed_out();
                let error = timed_out(self.timeout, last.as_ref());
                Ended::new(Outcome::Error, last.and_then(output_of), Some(error))
            }
        }
    }
}

impl Ended {
    pub(crate) fn new(outcome: Outcome, output: Option<String>, error: Option<String>) -> Self {
        Self {
            outcome,
            output: output.map(Arc::from),
            error,
            note: None,
            untrusted: None,
        }
    }

    /// The tool could not be started.
    pub(crate) fn failed(error: String) -> Self {
        Self::new(Outcome::Error, None, Some(error))
    }

    fn of(result: Result<String, BoxError>) -> Self {
        match result {
            Ok(output) => Self::new(Outcome::Ok, Some(output), None),
            Err(error) => {
                let message = error.to_string();
                Self::new(Outcome::Error, output_of(Err(error)), Some(message))
            }
        }
    }

    pub(crate) fn cancelled(last: Option<Result<String, BoxError>>) -> Self {
        let error = "the run was cancelled while the call was running".to_owned();
        Self::new(Outcome::Cancelled, last.and_then(output_of), Some(error))
    }

    pub(crate) fn not_started() -> Self {
        let error = "the run was cancelled before the call was started".to_owned();
        Self::new(Outcome::Cancelled, None, Some(error))
    }

    pub(crate) fn not_recorded(error: &str) -> Self {
        let error = format!("the log could not be written ({error}), so the call was not started");
        Self::new(Outcome::Cancelled, None, Some(error))
    }

    /// The call was approved before the run was interrupted, and a new rule denies it.
    pub(crate) fn denied_after_all(reason: &str) -> Self {
        let error = format!(
            "the call was allowed before the run was interrupted, but a rule now denies it: {reason}"
        );
        Self::new(Outcome::Cancelled, None, Some(error))
    }

    pub(crate) fn panicked(message: &str) -> Self {
        Self::new(
            Outcome::Error,
            None,
            Some(format!("the tool panicked: {message}")),
        )
    }

    /// A user reports the end of an interrupted call.
    pub(crate) fn confirmed(mut self, what: &str) -> Self {
        let interrupted = "the run was interrupted while the call was running";
        self.note = Some(format!("{interrupted}; a user confirmed that it {what}").into());
        self
    }

    pub(crate) fn unknown(error: Option<&BoxError>) -> Self {
        let error = error.map(|error| format!(" ({error})"));
        let error = error.unwrap_or_default();
        let message = format!(
            "the run was interrupted while the call was running, so its outcome is unknown{error}"
        );
        Self::new(Outcome::Unknown, None, Some(message))
    }
}

/// Returns the output of a tool, also if it failed.
fn output_of(result: Result<String, BoxError>) -> Option<String> {
    match result {
        Ok(output) => Some(output),
        Err(error) => error.downcast::<Failure>().ok()?.output,
    }
}

/// Returns the error of a call that timed out, with the tool's error if it has one.
fn timed_out(time: Duration, last: Option<&Result<String, BoxError>>) -> String {
    let timed_out = CallFailure::TimedOut(time);
    match last {
        Some(Err(error)) => format!("{timed_out}; {error}"),
        _ => timed_out.to_string(),
    }
}
