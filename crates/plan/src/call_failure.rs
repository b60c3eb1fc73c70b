//! Why a call has no result, as sentences for the model.

use std::fmt;
use std::time::Duration;

/// Why a call has no result. `Display` writes the sentence for the model.
///
/// ```
/// use plaincall_plan::CallFailure;
///
/// let failure = CallFailure::named("timed_out", "0.5");
/// assert_eq!(failure.map(|it| it.to_string()).as_deref(), Some("timed out after 500 ms"));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CallFailure<'f> {
    /// The call was denied without a reason.
    NotApproved,
    /// The decision about the call failed with this error.
    Approval(&'f str),
    /// The tool exceeded its time limit.
    TimedOut(Duration),
    /// The tool has this error, but continues to run.
    Running(&'f str),
    /// The tool was cancelled, not its call.
    Cancelled,
    /// The tool failed with this error, which may be empty.
    Failed(&'f str),
    /// The tool ran, but writing its result failed with this error.
    Unwritable(&'f str),
    /// The tool of this name has no function.
    NoFunction(&'f str),
}

impl<'f> CallFailure<'f> {
    /// Returns the failure of this name, such as `timed_out`, for programs in other languages. `detail` is the text of the
    /// variant, or a number of seconds.
    pub fn named(name: &str, detail: &'f str) -> Option<Self> {
        Some(match name {
            "not_approved" => Self::NotApproved,
            "approval" => Self::Approval(detail),
            "timed_out" => {
                let seconds = detail.parse().unwrap_or_default();
                Self::TimedOut(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
            }
            "running" => Self::Running(detail),
            "cancelled" => Self::Cancelled,
            "failed" => Self::Failed(detail),
            "unwritable" => Self::Unwritable(detail),
            "no_function" => Self::NoFunction(detail),
            _ => return None,
        })
    }
}

impl fmt::Display for CallFailure<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotApproved => formatter.write_str("this call was not approved"),
            Self::Approval(error) => write!(formatter, "the call could not be approved: {error}"),
            Self::TimedOut(time) => write!(formatter, "timed out after {}", format_duration(*time)),
            Self::Running(error) => {
                write!(
                    formatter,
                    "{error}; it still runs, and may still take effect"
                )
            }
            Self::Cancelled => formatter.write_str("the tool was cancelled"),
            Self::Failed("") => formatter.write_str("the tool failed"),
            Self::Failed(error) => write!(formatter, "the tool failed: {error}"),
            Self::Unwritable(error) => write!(
                formatter,
                "the tool ran, but its result cannot be written as text: {error}"
            ),
            Self::NoFunction(tool) => write!(formatter, "the tool `{tool}` has no function"),
        }
    }
}

/// Formats a duration for messages: `60 s`, `1500 ms`.
pub fn format_duration(time: Duration) -> String {
    if time.subsec_nanos() == 0 {
        format!("{} s", time.as_secs())
    } else {
        format!("{} ms", time.as_millis())
    }
}
