//! The states and end statuses of calls.

use std::fmt;

/// The index of a call in order of appearance, from 0, over the whole conversation. It is unique even if ids are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallIndex(pub(crate) u32);

impl CallIndex {
    /// Creates an index. A plan may have no call with it.
    pub fn new(index: u32) -> Self {
        Self(index)
    }

    /// Returns the index as `u32`.
    pub fn get(self) -> u32 {
        self.0
    }

    /// Returns the index as `usize`.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CallIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The state of a call (`spec/running.md`, "The life of a call").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// The header was parsed, the text is still arriving.
    Writing,
    /// Complete. The call waits for its dependencies, for calls written before it, or for the end of its turn.
    Waiting,
    /// The call waits for approval, without a slot.
    Ready,
    /// Approved. The call waits for a slot.
    Admitted,
    /// Started. The call holds a slot.
    Running,
    /// The call failed and waits for a retry, or was interrupted and set aside. It holds no slot.
    BackOff,
    /// The call has ended.
    Ended(Status),
}

impl State {
    /// Returns the end status, if the call has ended.
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Ended(status) => Some(status),
            _ => None,
        }
    }

    /// Returns whether the call has not ended, is not running and is not backing off. This includes a call that waits for a
    /// slot before a retry.
    pub fn is_unstarted(self) -> bool {
        matches!(
            self,
            Self::Writing | Self::Waiting | Self::Ready | Self::Admitted
        )
    }
}

impl fmt::Display for State {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(match self {
            Self::Writing => "writing",
            Self::Waiting => "waiting",
            Self::Ready => "ready",
            Self::Admitted => "admitted",
            Self::Running => "running",
            Self::BackOff => "backing off",
            Self::Ended(status) => status.name(),
        })
    }
}

/// How a call ended. Every call ends with exactly one status (`spec/running.md`, "End statuses").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Status {
    /// The call succeeded.
    Ok,
    /// The call failed or timed out.
    Error,
    /// The call was not run, because another call did not succeed.
    Skipped,
    /// The call was not run, because it is invalid or the gate denied it.
    Rejected,
    /// The call was cancelled, before its start or while it was running.
    Cancelled,
    /// The call was interrupted, and its outcome is unknown.
    Unknown,
}

impl Status {
    /// All statuses.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Error,
        Self::Skipped,
        Self::Rejected,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// Returns the name of the status in logs and results.
    pub fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }

    /// Returns the status with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.name() == name)
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.name())
    }
}

/// How a started call ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// The call succeeded.
    Ok,
    /// The call failed or timed out.
    Error,
    /// The call was stopped.
    Cancelled,
    /// The call was interrupted, for example by a crash, and its outcome is unknown.
    Unknown,
}

impl From<Outcome> for Status {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Ok => Self::Ok,
            Outcome::Error => Self::Error,
            Outcome::Cancelled => Self::Cancelled,
            Outcome::Unknown => Self::Unknown,
        }
    }
}

/// The number of calls of the conversation in each state. The sum is the number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Counts {
    /// Calls in [`State::Writing`].
    pub writing: u32,
    /// Calls in [`State::Waiting`].
    pub waiting: u32,
    /// Calls in [`State::Ready`].
    pub ready: u32,
    /// Calls in [`State::Admitted`].
    pub admitted: u32,
    /// Calls in [`State::Running`].
    pub running: u32,
    /// Calls in [`State::BackOff`].
    pub back_off: u32,
    /// Calls in [`State::Ended`].
    pub ended: StatusCounts,
}

impl Counts {
    /// Returns the number of calls that have not ended.
    pub fn unended(&self) -> u32 {
        self.writing + self.waiting + self.ready + self.admitted + self.running + self.back_off
    }

    pub(crate) fn of(&mut self, state: State) -> &mut u32 {
        match state {
            State::Writing => &mut self.writing,
            State::Waiting => &mut self.waiting,
            State::Ready => &mut self.ready,
            State::Admitted => &mut self.admitted,
            State::Running => &mut self.running,
            State::BackOff => &mut self.back_off,
            State::Ended(status) => self.ended.of(status),
        }
    }
}

/// The number of calls by end status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub struct StatusCounts {
    /// Calls that succeeded.
    pub ok: u32,
    /// Calls that failed.
    pub error: u32,
    /// Calls that did not run because of another call.
    pub skipped: u32,
    /// Calls that were invalid or not allowed.
    pub rejected: u32,
    /// Calls that were cancelled.
    pub cancelled: u32,
    /// Calls whose outcome is unknown.
    pub unknown: u32,
}

impl StatusCounts {
    /// Counts one more call.
    pub fn add(&mut self, status: Status) {
        *self.of(status) += 1;
    }

    /// Returns the number of calls.
    pub fn total(&self) -> u32 {
        self.ok + self.error + self.skipped + self.rejected + self.cancelled + self.unknown
    }

    fn of(&mut self, status: Status) -> &mut u32 {
        match status {
            Status::Ok => &mut self.ok,
            Status::Error => &mut self.error,
            Status::Skipped => &mut self.skipped,
            Status::Rejected => &mut self.rejected,
            Status::Cancelled => &mut self.cancelled,
            Status::Unknown => &mut self.unknown,
        }
    }
}
