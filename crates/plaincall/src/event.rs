//! What happens in a run, as it happens.

use std::sync::Arc;
use std::time::Duration;

use serde::{Serialize, Serializer};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::result::{CallResult, StatusCounts, milliseconds};

/// Something that happened in a run. As JSON it is one line of the record; times are `t_ms`, in whole milliseconds
/// from the beginning of the run.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunEvent {
    /// A call has appeared: its header has been read, its text is still arriving.
    Call(Appeared),
    /// A call is complete and waits for what it depends on, or for a slot. Every complete call that is not wrong
    /// waits, if only for a moment.
    Waiting(Moment),
    /// Nothing but the gate stands in the call's way.
    Ready(Moment),
    /// The tool has been started.
    Start(Moment),
    /// The call has ended; every call does, exactly once.
    Result(CallResult),
    /// The turn is over and all its calls have ended.
    End(TurnEnd),
}

/// A call and a time.
#[derive(Clone, Debug, Serialize)]
pub struct Moment {
    /// The call's place in order of appearance, from 0, unique over the conversation.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
    /// The name of its tool, as written.
    pub name: Arc<str>,
    /// When it happened, counted from the beginning of the run.
    #[serde(rename = "t_ms", serialize_with = "as_milliseconds")]
    pub at: Duration,
}

/// A call whose header has been read.
#[derive(Clone, Debug, Serialize)]
pub struct Appeared {
    /// The call's place in order of appearance, from 0, unique over the conversation.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
    /// The name of its tool, as written.
    pub name: Arc<str>,
    /// The ids that it names as dependencies.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    pub dependencies: Arc<[String]>,
    /// When it happened, counted from the beginning of the run.
    #[serde(rename = "t_ms", serialize_with = "as_milliseconds")]
    pub at: Duration,
}

/// The end of a turn.
#[derive(Clone, Debug, Serialize)]
pub struct TurnEnd {
    /// How many calls of the turn ended how.
    pub counts: StatusCounts,
    /// When it happened, counted from the beginning of the run.
    #[serde(rename = "t_ms", serialize_with = "as_milliseconds")]
    pub at: Duration,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the form that serde asks for"
)]
fn as_milliseconds<S: Serializer>(time: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(milliseconds(*time))
}

/// The events of a run, from [`Run::events`](crate::Run::events).
///
/// Nothing waits for the reader: a display that is slow, or a reader that has stopped reading, does not hold up a
/// call. What has not been read is kept; that is at most six small events a call, since outputs are shared with the
/// results and not copied.
#[derive(Debug)]
pub struct RunEvents {
    receiver: UnboundedReceiver<RunEvent>,
}

impl RunEvents {
    pub(crate) fn new() -> (UnboundedSender<RunEvent>, Self) {
        let (sender, receiver) = unbounded_channel();
        (sender, Self { receiver })
    }

    /// The next event; `None` when the run is over: it was dropped and all its calls have ended.
    ///
    /// May be used in `select!`: no event is lost if the future is dropped.
    pub async fn next(&mut self) -> Option<RunEvent> {
        self.receiver.recv().await
    }

    /// The next event if there is one already.
    pub fn try_next(&mut self) -> Option<RunEvent> {
        self.receiver.try_recv().ok()
    }
}

/// Those who listen.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    senders: Vec<UnboundedSender<RunEvent>>,
}

impl Listeners {
    pub(crate) fn add(&mut self, sender: UnboundedSender<RunEvent>) {
        self.senders.push(sender);
    }

    /// Tells all who still listen. The event is made only if somebody does.
    pub(crate) fn tell(&mut self, event: impl FnOnce() -> RunEvent) {
        self.senders.retain(|sender| !sender.is_closed());
        if let Some((last, others)) = self.senders.split_last() {
            let event = event();
            for sender in others {
                let _ = sender.send(event.clone());
            }
            let _ = last.send(event);
        }
    }
}
