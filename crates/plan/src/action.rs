//! The actions that a plan asks for, and the reasons for them.

use std::fmt;
use std::sync::Arc;

use crate::state::CallIndex;

/// An action for the caller: something to do or to record.
///
/// Every call that ends without [`Plan::finish`](crate::Plan::finish) causes exactly one `Skip`, `Reject` or `Cancel`, also if
/// the caller itself rejected or denied it. So the caller can record all these ends in one place. An end that the caller
/// reported with `finish` causes no action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// All dependencies have ended: decide about the call, then `admit` or `deny` it.
    Ready(CallIndex),
    /// Run the call. It holds a slot until `finish` or `back_off`. Every `retry` causes another `Start`.
    Start(CallIndex),
    /// The call has ended as `skipped`.
    Skip {
        /// The skipped call.
        call: CallIndex,
        /// The cause.
        because: Because,
    },
    /// The call has ended as `rejected`.
    Reject {
        /// The rejected call.
        call: CallIndex,
        /// The reason.
        reason: RejectReason,
    },
    /// The call has ended as `cancelled` while it was not running: before it started, or while it waited for a retry.
    Cancel(CallIndex),
    /// Stop the running call, then report its end with `finish`.
    Stop(CallIndex),
}

/// The calls because of which a call was skipped (`spec/running.md`, "Skipping").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub struct Because {
    /// How the call is linked to the direct cause.
    pub link: Link,
    /// The direct cause.
    pub direct: CallIndex,
    /// The first cause: the call that failed, and was not itself skipped.
    pub root: CallIndex,
}

/// How a skipped call is linked to its direct cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "snake_case"))]
pub enum Link {
    /// It depends on that call.
    Dependency,
    /// It was written after that call, in sequential order with `stop_on_error`.
    Order,
}

/// The reason why a call was rejected (`spec/running.md`, "What rejects a call"). `Display` writes a sentence for the model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectReason {
    /// An earlier call of the same turn has this id.
    DuplicateId {
        /// The id.
        id: Arc<str>,
        /// The call with this id.
        first: CallIndex,
    },
    /// The turn has reached its limit of calls.
    TooManyCalls {
        /// The limit.
        limit: u32,
    },
    /// The call depends on its own id.
    SelfDependency {
        /// The id.
        id: Arc<str>,
    },
    /// The call depends on ids that no call has.
    UnknownIds {
        /// The ids, in the order of the dependencies.
        ids: Vec<Arc<str>>,
    },
    /// The call is part of a cycle of calls that depend on each other.
    Cycle {
        /// All calls of the cycle, or of several cycles that share calls, in order of appearance.
        calls: Arc<[(CallIndex, Arc<str>)]>,
    },
    /// The turn ended while the call was still being written.
    Unfinished,
    /// The tool is deferred, and the reply was truncated.
    TruncatedReply,
    /// The caller rejected the call: it is truncated, has invalid arguments or names an unknown tool.
    Invalid(String),
    /// The gate denied the call.
    Denied(String),
}

/// At most this many ids are listed, because every call of a long cycle has the message.
const LISTED_IDS: usize = 8;

fn list<'a>(
    formatter: &mut fmt::Formatter<'_>,
    ids: impl ExactSizeIterator<Item = &'a Arc<str>>,
) -> fmt::Result {
    let count = ids.len();
    for (index, id) in ids.take(LISTED_IDS).enumerate() {
        let comma = if index == 0 { "" } else { ", " };
        write!(formatter, "{comma}`{id}`")?;
    }
    match count.saturating_sub(LISTED_IDS) {
        0 => Ok(()),
        more => write!(formatter, " and {more} more"),
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The index of the first call means nothing to a model, because it counts over the whole conversation.
            Self::DuplicateId { id, first: _ } => write!(
                formatter,
                "the id `{id}` is already taken by an earlier call of this turn; give this call another id"
            ),
            Self::TooManyCalls { limit: 0 } => {
                formatter.write_str("no more calls may be made; answer with what is known")
            }
            Self::TooManyCalls { limit } => {
                let calls = if *limit == 1 { "call" } else { "calls" };
                write!(
                    formatter,
                    "a turn may have at most {limit} {calls}; make this call in the next turn"
                )
            }
            Self::SelfDependency { id } => {
                write!(
                    formatter,
                    "the call depends on itself (`{id}`): remove that dependency"
                )
            }
            Self::UnknownIds { ids } => {
                formatter.write_str("no call has the id ")?;
                list(formatter, ids.iter())?;
                formatter.write_str(": correct or remove this dependency")
            }
            Self::Cycle { calls } => {
                formatter.write_str("these calls wait for each other: ")?;
                list(formatter, calls.iter().map(|(_, id)| id))?;
                formatter.write_str("; remove a dependency")
            }
            Self::Unfinished => formatter.write_str("the turn ended before the call was complete"),
            Self::TruncatedReply => formatter.write_str(
                "the reply was truncated before this call could run; make the call again",
            ),
            Self::Invalid(reason) | Self::Denied(reason) => formatter.write_str(reason),
        }
    }
}
