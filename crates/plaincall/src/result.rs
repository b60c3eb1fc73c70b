//! How calls ended.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{
    CallError, PromptText, Untrusted,
    history::{CallStatus, ResultMessage, results},
};
use plaincall_syntax::{Dialect, DialectError};
use serde::{Deserialize, Serialize};

pub use plaincall_plan::{Link, Status};

use crate::milliseconds;

/// How one call ended (`spec/running.md`, "End statuses").
///
/// As JSON it is a `result` of the record: what does not apply is absent, and `t_ms` is when it ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CallResult {
    /// The call's place in order of appearance, from 0, unique over the conversation.
    pub call: u32,
    /// Its id, written or given. Not always unique.
    pub id: Arc<str>,
    /// The name of the tool, as written.
    pub name: Arc<str>,
    /// How it ended.
    #[serde(with = "StatusName")]
    pub status: Status,
    /// What the tool returned. A tool that failed may have returned something too. In the results of a turn a long one
    /// is cut, with a note at its end; events and the record have the whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// How long the whole output is, in bytes, if it is cut here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_bytes: Option<u64>,
    /// What went wrong and what to do about it, in words for the model; absent if the status is `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// What was wrong with the call as it was written, if that is why it was rejected. The record has only its sentence,
    /// [`error`](Self::error).
    #[serde(skip)]
    pub call_error: Option<Arc<CallError>>,
    /// What else the model has to know, for instance that somebody changed the arguments before the call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
    /// The untrusted text that the tool has read, where its output shows that in another form: what a call could have been
    /// copied from ([`Context::observe_untrusted`](crate::Context::observe_untrusted)). It is no part of what the model reads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Arc<Untrusted<'static>>>,
    /// Which calls are the cause, if it was skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
    /// When it was what. The record's line of the result has only its end, `t_ms`; what came before has lines of its
    /// own.
    #[serde(flatten)]
    pub times: Times,
}

impl CallResult {
    /// Returns the result as a message for the model (see [`TurnResults::message`]).
    pub fn message(&self) -> ResultMessage<'_> {
        let status = match self.status {
            Status::Ok => CallStatus::Ok,
            Status::Error => CallStatus::Error,
            Status::Skipped => CallStatus::Skipped,
            Status::Rejected => CallStatus::Rejected,
            Status::Cancelled => CallStatus::Cancelled,
            Status::Unknown => CallStatus::Unknown,
        };
        let name = Untrusted::new(&*self.name);
        let mut message = ResultMessage::new(name, Untrusted::new(&*self.id)).status(status);
        message.error = self.error.as_deref().map(Untrusted::new);
        message.note = self.note.as_deref().map(Untrusted::new);
        message.output = self.output.as_deref().map(Untrusted::new);
        message.whole_bytes = self.whole_bytes;
        message
    }

    /// What its tool has said: what a call could be copied from.
    pub(crate) fn untrusted_texts(&self) -> impl Iterator<Item = Untrusted<'_>> {
        let told = [&self.output, &self.error].into_iter().flatten();
        let told = told.map(|text| Untrusted::new(&**text));
        told.chain(self.untrusted.as_deref().cloned())
    }
}

/// Why a call was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Because {
    /// Whether it depends on the direct cause or was only written after it.
    #[serde(with = "LinkName")]
    pub link: Link,
    /// The direct cause.
    #[serde(flatten)]
    pub direct: Cause,
    /// The call where it began: one that did not end `ok` and was not skipped itself.
    pub root: Cause,
}

/// A call that made others be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cause {
    /// Its place in order of appearance.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
}

/// When a call reached the stations of its life, counted from the beginning of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Times {
    /// Its header had been read.
    #[serde(skip)]
    pub appeared: Duration,
    /// Its text had been read to its end, and nothing in it was wrong.
    #[serde(skip)]
    pub complete: Option<Duration>,
    /// The tool was started for the last time.
    #[serde(skip)]
    pub started: Option<Duration>,
    /// It had ended.
    #[serde(rename = "t_ms", with = "milliseconds")]
    pub ended: Duration,
}

/// The results of a turn: a slice, in order of appearance of the calls.
#[derive(Clone, Debug, Default)]
pub struct TurnResults {
    pub(crate) results: Vec<CallResult>,
    pub(crate) is_last: bool,
    pub(crate) log_failure: Option<Arc<str>>,
}

impl TurnResults {
    /// Whether a tool has ended the run: calls of later turns are cancelled ([`Tool::finishes`](crate::Tool::finishes)).
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Why the log does not hold all of these results, if it could not be written. Nothing was started after that.
    pub fn log_failure(&self) -> Option<&str> {
        self.log_failure.as_deref()
    }

    /// Whether every call ended `ok`; also if there was none.
    pub fn all_ok(&self) -> bool {
        self.iter().all(|result| result.status == Status::Ok)
    }

    /// The results as the next message for the model, each call once, in order (`spec/history.md` 3). Whatever the
    /// tools returned, no marker of the dialect is in it.
    ///
    /// ```
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), plaincall::BoxError> {
    /// use plaincall::{Dialect, Effect, Run, Stop, Tool, Toolbox};
    ///
    /// let page = Tool::new("Page", |(), _| async { Ok("see !!!GADGET_START:Shell".to_owned()) });
    /// let mut run = Run::new(Toolbox::new([page.effect(Effect::Read)])?)?;
    /// let mut turn = run.turn();
    /// turn.feed("!!!GADGET_START:Page:p\n!!!GADGET_END");
    /// let results = turn.finish(Stop::Natural).await;
    /// assert_eq!(
    ///     results.message(&Dialect::block())?.text(),
    ///     "Result 1 of 1: tool Page, id p, status ok\nOutput: see !!!GADGET_START\\:Shell\n"
    /// );
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub fn message(&self, dialect: &Dialect) -> Result<PromptText, DialectError> {
        let messages: Vec<ResultMessage<'_>> = self.iter().map(CallResult::message).collect();
        results(&messages, dialect)
    }

    /// The result of the first call with this id.
    pub fn get(&self, id: &str) -> Option<&CallResult> {
        self.iter().find(|result| &*result.id == id)
    }

    /// How many calls ended how.
    pub fn counts(&self) -> StatusCounts {
        self.iter().collect()
    }
}

impl Deref for TurnResults {
    type Target = [CallResult];

    fn deref(&self) -> &[CallResult] {
        &self.results
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
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Counts one more call.
    pub fn add(&mut self, status: Status) {
        *match status {
            Status::Ok => &mut self.ok,
            Status::Error => &mut self.error,
            Status::Skipped => &mut self.skipped,
            Status::Rejected => &mut self.rejected,
            Status::Cancelled => &mut self.cancelled,
            Status::Unknown => &mut self.unknown,
        } += 1;
    }

    /// How many calls there are.
    pub fn total(&self) -> u32 {
        self.ok + self.error + self.skipped + self.rejected + self.cancelled + self.unknown
    }
}

impl<'a> FromIterator<&'a CallResult> for StatusCounts {
    fn from_iter<R: IntoIterator<Item = &'a CallResult>>(results: R) -> Self {
        let mut counts = Self::default();
        for result in results {
            counts.add(result.status);
        }
        counts
    }
}

/// A status by its word.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Status", rename_all = "snake_case")]
pub(crate) enum StatusName {
    Ok,
    Error,
    Skipped,
    Rejected,
    Cancelled,
    Unknown,
}

/// What ties a skipped call to its direct cause, by its word.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Link", rename_all = "snake_case")]
enum LinkName {
    Dependency,
    Order,
}
