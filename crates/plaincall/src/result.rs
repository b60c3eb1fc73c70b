//! How calls ended.

use std::ops::Index;
use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};

pub use plaincall_plan::{Link, Status};

/// How one call ended (`spec/running.md`, "End statuses").
///
/// As JSON it is a `result` of the record: what does not apply is absent, and `t_ms` is when it ended.
#[derive(Clone, Debug, Serialize)]
pub struct CallResult {
    /// The call's place in order of appearance, from 0, unique over the conversation.
    pub call: u32,
    /// Its id, written or given. Not always unique.
    pub id: Arc<str>,
    /// The name of the tool, as written.
    pub name: Arc<str>,
    /// How it ended.
    #[serde(serialize_with = "status_name")]
    pub status: Status,
    /// What the tool returned. A tool that failed may have returned something too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// What went wrong and what to do about it, in words for the model; absent if the status is `ok`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// Which calls are the cause, if it was skipped.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
    /// When it was what.
    #[serde(flatten, serialize_with = "end_time")]
    pub times: Times,
}

/// Why a call was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Because {
    /// Whether it depends on the direct cause or was only written after it.
    #[serde(serialize_with = "link_name")]
    pub link: Link,
    /// The direct cause.
    #[serde(flatten)]
    pub direct: Cause,
    /// The call where it began: one that did not end `ok` and was not skipped itself.
    pub root: Cause,
}

/// A call that made others be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// Its place in order of appearance.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
}

/// When a call reached the stations of its life, counted from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// Its header had been read.
    pub appeared: Duration,
    /// Its text had been read to its end, and nothing in it was wrong.
    pub complete: Option<Duration>,
    /// The tool was started.
    pub started: Option<Duration>,
    /// It had ended.
    pub ended: Duration,
}

/// The results of a turn, in order of appearance of its calls.
#[derive(Clone, Debug, Default)]
pub struct TurnResults {
    pub(crate) results: Vec<CallResult>,
}

impl TurnResults {
    /// The results in order of appearance of the calls.
    pub fn iter(&self) -> std::slice::Iter<'_, CallResult> {
        self.results.iter()
    }

    /// How many calls the turn had.
    pub fn len(&self) -> usize {
        self.results.len()
    }

    /// Whether the turn had no calls.
    pub fn is_empty(&self) -> bool {
        self.results.is_empty()
    }

    /// Whether every call ended `ok`; also if there was none.
    pub fn all_ok(&self) -> bool {
        self.iter().all(|result| result.status == Status::Ok)
    }

    /// The result of the first call with this id.
    pub fn get(&self, id: &str) -> Option<&CallResult> {
        self.iter().find(|result| &*result.id == id)
    }

    /// How many calls ended how.
    pub fn counts(&self) -> StatusCounts {
        let mut counts = StatusCounts::default();
        for result in self {
            *counts.of(result.status) += 1;
        }
        counts
    }
}

impl Index<usize> for TurnResults {
    type Output = CallResult;

    /// The result of the call at this place of the turn.
    ///
    /// # Panics
    /// If the turn has fewer calls.
    #[allow(
        clippy::indexing_slicing,
        reason = "the contract of `[]`; `iter` and `get` do not panic"
    )]
    fn index(&self, place: usize) -> &CallResult {
        &self.results[place]
    }
}

impl<'a> IntoIterator for &'a TurnResults {
    type Item = &'a CallResult;
    type IntoIter = std::slice::Iter<'a, CallResult>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl IntoIterator for TurnResults {
    type Item = CallResult;
    type IntoIter = std::vec::IntoIter<CallResult>;

    fn into_iter(self) -> Self::IntoIter {
        self.results.into_iter()
    }
}

/// How many calls ended how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct StatusCounts {
    /// Calls that succeeded.
    pub ok: u32,
    /// Calls that failed.
    pub error: u32,
    /// Calls that were not run because of another one.
    pub skipped: u32,
    /// Calls that were not run for a fault of their own, or because they were not allowed.
    pub rejected: u32,
    /// Calls that were called off.
    pub cancelled: u32,
    /// Calls of which nobody knows what became.
    pub unknown: u32,
}

impl StatusCounts {
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

    /// How many calls there are.
    pub fn total(&self) -> u32 {
        self.ok + self.error + self.skipped + self.rejected + self.cancelled + self.unknown
    }
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
pub(crate) fn status_name<S: Serializer>(
    status: &Status,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(status.as_str())
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn link_name<S: Serializer>(link: &Link, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match link {
        Link::Dependency => "dependency",
        Link::Order => "order",
    })
}

fn end_time<S: Serializer>(times: &Times, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct Ended {
        t_ms: u64,
    }
    let t_ms = milliseconds(times.ended);
    Ended { t_ms }.serialize(serializer)
}

/// A time as records write it.
pub(crate) fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
