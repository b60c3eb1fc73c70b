//! Results of calls.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use plaincall_prompt::history::{ResultMessage, results};
use plaincall_reply::{CallError, PromptText, Untrusted, untrusted::in_record};
use plaincall_syntax::{Dialect, DialectError};
use serde::{Deserialize, Serialize};

pub use plaincall_plan::{Link, Status, StatusCounts};

use crate::milliseconds;

/// The result of a call (`spec/running.md`, "End statuses"). As JSON it is a `result` event of the log.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct CallResult {
    /// The call's index in order of appearance, from 0, unique in the run.
    pub call: u32,
    /// The id, written or generated. Not always unique.
    pub id: Arc<str>,
    /// The name of the tool, as written.
    pub name: Arc<str>,
    /// The end status.
    pub status: Status,
    /// The output, also of a failed tool. The results of a turn have a truncated one if it is long; events have all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Arc<str>>,
    /// The length of the whole output in bytes, if it is truncated here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub whole_bytes: Option<u64>,
    /// The error message for the model; `None` if the status is `ok`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<Arc<str>>,
    /// The problem of a rejected call. The log has only the message, [`error`](Self::error).
    #[serde(skip)]
    pub call_error: Option<Arc<CallError>>,
    /// A note for the model, for example that a user edited the arguments before the call ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<Arc<str>>,
    /// The untrusted text that the tool recorded ([`Context::observe_untrusted`](crate::Context::observe_untrusted)). It is
    /// not part of the message for the model.
    #[serde(with = "in_record", default, skip_serializing_if = "Option::is_none")]
    pub untrusted: Option<Arc<Untrusted<'static>>>,
    /// The calls that caused it to be skipped.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub because: Option<Because>,
    /// The times of the call. In the log, the `result` event has only its end, as `t_ms`.
    #[serde(flatten)]
    pub times: Times,
}

impl CallResult {
    /// Creates a result without output, error and times.
    pub fn new<T: Into<Arc<str>>>(call: u32, id: T, name: T, status: Status) -> Self {
        Self {
            call,
            id: id.into(),
            name: name.into(),
            status,
            output: None,
            whole_bytes: None,
            error: None,
            call_error: None,
            note: None,
            untrusted: None,
            because: None,
            times: Times::default(),
        }
    }

    /// Returns the result as a message for the model (see [`TurnResults::message`]).
    pub fn message(&self) -> ResultMessage<'_> {
        let name = Untrusted::new(&*self.name);
        let mut message = ResultMessage::new(name, Untrusted::new(&*self.id)).status(self.status);
        message.error = self.error.as_deref().map(Untrusted::new);
        message.note = self.note.as_deref().map(Untrusted::new);
        message.output = self.output.as_deref().map(Untrusted::new);
        message.whole_bytes = self.whole_bytes;
        message
    }

    /// Returns the texts of the tool, which a call could be copied from.
    pub(crate) fn untrusted_texts(&self) -> impl Iterator<Item = Untrusted<'_>> {
        let texts = [&self.output, &self.error].into_iter().flatten();
        let texts = texts.map(|text| Untrusted::new(&**text));
        texts.chain(self.untrusted.as_deref().cloned())
    }
}

/// The reason why a call was skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Because {
    /// Whether the call depends on the direct cause or was only written after it.
    pub link: Link,
    /// The direct cause.
    #[serde(flatten)]
    pub direct: Cause,
    /// The call where it began: one that did not end `ok` and was not skipped itself.
    pub root: Cause,
}

impl Because {
    /// Creates a reason.
    pub const fn new(link: Link, direct: Cause, root: Cause) -> Self {
        Self { link, direct, root }
    }
}

impl Cause {
    /// Creates a cause.
    pub const fn new(call: u32, id: Arc<str>) -> Self {
        Self { call, id }
    }
}

/// A call that made others be skipped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Cause {
    /// The index of the call in order of appearance, from 0.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
}

/// The times of a call, since the start of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Times {
    /// When its header was parsed.
    #[serde(skip)]
    pub appeared: Duration,
    /// When it was complete and valid.
    #[serde(skip)]
    pub complete: Option<Duration>,
    /// When the tool was last started.
    #[serde(skip)]
    pub started: Option<Duration>,
    /// When it ended.
    #[serde(rename = "t_ms", with = "milliseconds")]
    pub ended: Duration,
}

/// The results of a turn, in order of appearance of the calls. Dereferences to a slice.
#[derive(Clone, Debug, Default)]
pub struct TurnResults {
    pub(crate) results: Vec<CallResult>,
    pub(crate) is_last: bool,
    pub(crate) log_failure: Option<Arc<str>>,
}

impl TurnResults {
    /// Returns whether a tool ended the run ([`Tool::finishes`](crate::Tool::finishes)). Calls of later turns are cancelled.
    pub fn is_last(&self) -> bool {
        self.is_last
    }

    /// Returns the error if the log could not be written. The log then lacks some of these results, and no call was started
    /// after the error.
    pub fn log_failure(&self) -> Option<&str> {
        self.log_failure.as_deref()
    }

    /// Returns whether every call ended `ok`, or there was none.
    pub fn all_ok(&self) -> bool {
        self.iter().all(|result| result.status == Status::Ok)
    }

    /// Returns the next message for the model, with the result of each call in order (`spec/history.md` 3). Markers of the
    /// dialect in outputs are escaped.
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
    /// Returns an error if the dialect is invalid.
    pub fn message(&self, dialect: &Dialect) -> Result<PromptText, DialectError> {
        let messages: Vec<ResultMessage<'_>> = self.iter().map(CallResult::message).collect();
        results(&messages, dialect)
    }

    /// Returns the result of the first call with this id.
    pub fn get(&self, id: &str) -> Option<&CallResult> {
        self.iter().find(|result| &*result.id == id)
    }

    /// Returns the number of calls by end status.
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

impl<'a> FromIterator<&'a CallResult> for StatusCounts {
    fn from_iter<R: IntoIterator<Item = &'a CallResult>>(results: R) -> Self {
        let mut counts = Self::default();
        for result in results {
            counts.add(result.status);
        }
        counts
    }
}
