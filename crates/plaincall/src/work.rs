//! One call of a tool, from its start to its end, within its time.

use std::fmt::Write as _;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, Untrusted};
use plaincall_plan::Outcome;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::context::{Context, Observed};
use crate::invocation::MARGIN;
use crate::tool::Code;
use crate::tool_error::{BoxError, Failure};
use crate::trace::{Parent, ToolSpan};

pub(crate) struct Work {
    pub(crate) code: Code,
    pub(crate) arguments: Arc<Arguments>,
    pub(crate) context: Context,
    pub(crate) timeout: Duration,
    pub(crate) transform: Option<Arc<Transform>>,
    pub(crate) parent: Parent,
    pub(crate) attempt: u32,
}

/// Changes what a tool has said before anybody hears of it: the name of the tool, and the text.
pub(crate) type Transform = dyn Fn(&str, String) -> String + Send + Sync;

/// How a call ended that was started.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) output: Option<Arc<str>>,
    pub(crate) error: Option<String>,
    pub(crate) note: Option<Arc<str>>,
    /// The untrusted text that the tool has observed beside its output, as far as it counts.
    pub(crate) untrusted: Option<Arc<Untrusted<'static>>>,
}

/// Why a call is to stop before it is done.
enum Stop {
    TimedOut,
    Cancelled,
}

impl Work {
    /// Runs the tool until it is done, its time is over or `token` is cancelled. The time counts from `started`, so
    /// that it does not matter when the task gets its turn.
    pub(crate) async fn run(mut self, started: Instant, token: CancellationToken) -> Ended {
        let transform = self.transform.take();
        let name = Arc::clone(&self.context.name);
        let observed = Arc::clone(&self.context.observed);
        // What is said is changed within the span: a function that panics there makes the call fail.
        let mut span = ToolSpan::new(&self.parent, &self.context, self.attempt);
        let mut ended = self.run_tool(started, token, &mut span).await;
        let mut untrusted = Observed::take(&observed);
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
            // What is done at the last moment is done.
            biased;
            result = &mut work => {
                // One that hears of the cancellation itself may be faster than we are.
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
                Ended::new(Outcome::Error, last.and_then(said), Some(error))
            }
        }
    }
}

impl Ended {
    fn new(outcome: Outcome, output: Option<String>, error: Option<String>) -> Self {
        Self {
            outcome,
            output: output.map(Arc::from),
            error,
            note: None,
            untrusted: None,
        }
    }

    fn of(result: Result<String, BoxError>) -> Self {
        match result {
            Ok(output) => Self::new(Outcome::Ok, Some(output), None),
            Err(error) => {
                let message = error.to_string();
                Self::new(Outcome::Error, said(Err(error)), Some(message))
            }
        }
    }

    pub(crate) fn cancelled(last: Option<Result<String, BoxError>>) -> Self {
        let error = "the run was cancelled while the call was running".to_owned();
        Self::new(Outcome::Cancelled, last.and_then(said), Some(error))
    }

    pub(crate) fn not_started() -> Self {
        let error = "the run was cancelled before the call was started".to_owned();
        Self::new(Outcome::Cancelled, None, Some(error))
    }

    pub(crate) fn not_recorded(error: &str) -> Self {
        let error = format!("the log could not be written ({error}), so the call was not started");
        Self::new(Outcome::Cancelled, None, Some(error))
    }

    /// A rule that is new since a crash denies it.
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

    /// Somebody says that it was done before the run was cut off.
    pub(crate) fn said_to_be_done(output: String) -> Self {
        Self {
            note: Some(
                "the run was interrupted while the call was running; a user confirmed that it completed"
                    .into(),
            ),
            ..Self::new(Outcome::Ok, Some(output), None)
        }
    }

    /// Somebody says that it was not done before the run was cut off.
    pub(crate) fn said_not_to_be_done(reason: String) -> Self {
        Self {
            note: Some("the run was interrupted while the call was running; a user confirmed that it did not complete".into()),
            ..Self::new(Outcome::Error, None, Some(reason))
        }
    }

    pub(crate) fn unknown(error: Option<&BoxError>) -> Self {
        let mut message =
            "the run was interrupted while the call was running, so its outcome is unknown"
                .to_owned();
        if let Some(error) = error {
            let _ = write!(message, " ({error})");
        }
        Self::new(Outcome::Unknown, None, Some(message))
    }
}

/// What a tool has said, whether it failed or not.
fn said(result: Result<String, BoxError>) -> Option<String> {
    match result {
        Ok(output) => Some(output),
        Err(error) => error.downcast::<Failure>().ok()?.output,
    }
}

/// The error of a call that ran out of time, with what the tool said about its end.
fn timed_out(time: Duration, last: Option<&Result<String, BoxError>>) -> String {
    let time = in_words(time);
    match last {
        Some(Err(error)) => format!("timed out after {time}; {error}"),
        _ => format!("timed out after {time}"),
    }
}

/// A time for people: `60 s`, `1500 ms`.
pub(crate) fn in_words(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}
