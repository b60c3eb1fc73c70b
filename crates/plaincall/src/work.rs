//! One call of a tool, from its start to its end, within its time.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::Arguments;
use plaincall_plan::Outcome;
use tokio::time::{Instant, sleep_until, timeout};
use tokio_util::sync::CancellationToken;

use crate::context::Context;
use crate::tool::{BoxError, Code, Failure, Tool};

/// A call that is about to be started.
pub(crate) struct Work {
    code: Arc<dyn Code>,
    arguments: Arc<Arguments>,
    context: Context,
    timeout: Duration,
    grace: Duration,
}

/// How a call ended that was started.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) outcome: Outcome,
    pub(crate) output: Option<String>,
    pub(crate) error: Option<String>,
}

/// Why a call is to stop before it is done.
enum Stop {
    TimedOut,
    Cancelled,
}

impl Work {
    pub(crate) fn new(tool: &Tool, arguments: Arc<Arguments>, context: Context) -> Self {
        Self {
            code: Arc::clone(&tool.code),
            arguments,
            context,
            timeout: tool.timeout,
            grace: tool.grace,
        }
    }

    /// Runs the tool until it is done, its time is over or `token` is cancelled. The time counts from `started`, so
    /// that it does not matter when the task gets its turn.
    pub(crate) async fn run(self, started: Instant, token: CancellationToken) -> Ended {
        let arguments = Arc::unwrap_or_clone(self.arguments);
        let mut work = pin!(self.code.start(arguments, self.context));
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
        let grace = self.grace.saturating_add(self.code.margin());
        let last = timeout(grace, work).await.ok();
        match (stop, last) {
            (Stop::Cancelled, Some(Ok(output))) => Ended::of(Ok(output)),
            (Stop::Cancelled, last) => Ended::cancelled(last),
            (Stop::TimedOut, last) => Ended {
                outcome: Outcome::Error,
                error: Some(timed_out(self.timeout, last.as_ref())),
                output: last.and_then(said),
            },
        }
    }
}

impl Ended {
    fn of(result: Result<String, BoxError>) -> Self {
        match result {
            Ok(output) => Self {
                outcome: Outcome::Ok,
                output: Some(output),
                error: None,
            },
            Err(error) => Self {
                outcome: Outcome::Error,
                error: Some(error.to_string()),
                output: said(Err(error)),
            },
        }
    }

    fn cancelled(last: Option<Result<String, BoxError>>) -> Self {
        Self {
            outcome: Outcome::Cancelled,
            output: last.and_then(said),
            error: Some("the run was cancelled while the call was running".to_owned()),
        }
    }

    /// The tool's code has panicked.
    pub(crate) fn panicked(message: &str) -> Self {
        Self {
            outcome: Outcome::Error,
            output: None,
            error: Some(format!("the tool broke down: {message}")),
        }
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
fn in_words(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}
