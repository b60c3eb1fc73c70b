//! Where a call stands and how it ended.

use std::fmt;

/// A call's 0-based place in order of appearance, unique over the conversation even where ids are not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CallIndex(pub(crate) u32);

impl CallIndex {
    /// The call at this place. Whether there is one, only a plan can say.
    pub fn new(place: u32) -> Self {
        Self(place)
    }

    /// The place as a number, for records.
    pub fn get(self) -> u32 {
        self.0
    }

    /// The place as an index into a caller's own table of calls.
    pub fn index(self) -> usize {
        self.0 as usize
    }
}

impl fmt::Display for CallIndex {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// Where a call stands (`spec/running.md`, "The life of a call").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Its header has been seen, its text is still arriving.
    Writing,
    /// Complete; waits for its dependencies, or for calls written before it.
    Waiting,
    /// Nothing stands in its way; the gate has not decided yet. It holds no slot.
    Ready,
    /// The gate let it pass; it waits for a slot.
    Admitted,
    /// It has been started and holds a slot.
    Running,
    /// It failed, will be tried again, and holds no slot.
    BackOff,
    /// It has its one end status.
    Ended(Status),
}

impl State {
    /// The end status, if the call has ended.
    pub fn status(self) -> Option<Status> {
        match self {
            Self::Ended(status) => Some(status),
            _ => None,
        }
    }

    /// Whether the call has neither ended nor, since it last waited, started. An admitted call that is to be
    /// tried again counts as well.
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
            Self::Ended(status) => status.as_str(),
        })
    }
}

/// How a call ended; every call gets exactly one (`spec/running.md`, "End statuses").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Status {
    /// It ran and succeeded.
    Ok,
    /// It ran and failed, or ran out of time.
    Error,
    /// It was not run, because of how another call ended.
    Skipped,
    /// It was not run, because of a fault of its own or because the gate denied it.
    Rejected,
    /// It was called off, before its start or while it ran.
    Cancelled,
    /// It was started, and nobody knows what became of it.
    Unknown,
}

impl Status {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Ok,
        Self::Error,
        Self::Skipped,
        Self::Rejected,
        Self::Cancelled,
        Self::Unknown,
    ];

    /// The word that records and results use.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Rejected => "rejected",
            Self::Cancelled => "cancelled",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.pad(self.as_str())
    }
}

/// What the caller reports of a call that was started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It succeeded.
    Ok,
    /// It failed or ran out of time.
    Error,
    /// It was stopped before it was done.
    Cancelled,
    /// It was started, and nobody knows what became of it: a record that breaks off after the start.
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

/// How many calls of the conversation stand where. The fields add up to the number of calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
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
    /// Calls that ended [`Status::Ok`].
    pub ok: u32,
    /// Calls that ended [`Status::Error`].
    pub error: u32,
    /// Calls that ended [`Status::Skipped`].
    pub skipped: u32,
    /// Calls that ended [`Status::Rejected`].
    pub rejected: u32,
    /// Calls that ended [`Status::Cancelled`].
    pub cancelled: u32,
    /// Calls that ended [`Status::Unknown`].
    pub unknown: u32,
}

impl Counts {
    /// Calls that have not ended. With the turn closed, 0 means that all is done.
    pub fn unended(&self) -> u32 {
        self.writing + self.waiting + self.ready + self.admitted + self.running + self.back_off
    }

    /// Calls that have ended, whatever their status.
    pub fn ended(&self) -> u32 {
        self.ok + self.error + self.skipped + self.rejected + self.cancelled + self.unknown
    }

    /// The count of one state, to be read or changed.
    pub(crate) fn of(&mut self, state: State) -> &mut u32 {
        match state {
            State::Writing => &mut self.writing,
            State::Waiting => &mut self.waiting,
            State::Ready => &mut self.ready,
            State::Admitted => &mut self.admitted,
            State::Running => &mut self.running,
            State::BackOff => &mut self.back_off,
            State::Ended(Status::Ok) => &mut self.ok,
            State::Ended(Status::Error) => &mut self.error,
            State::Ended(Status::Skipped) => &mut self.skipped,
            State::Ended(Status::Rejected) => &mut self.rejected,
            State::Ended(Status::Cancelled) => &mut self.cancelled,
            State::Ended(Status::Unknown) => &mut self.unknown,
        }
    }
}
