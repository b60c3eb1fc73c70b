//! What comes out of the plan.

use std::fmt;
use std::sync::Arc;

use crate::state::CallIndex;

/// What the caller has to do or to record.
///
/// Every call that ends without the caller's [`Plan::ended`](crate::Plan::ended) comes out as exactly one
/// `Skip`, `Reject` or `Cancel`, also when the caller itself rejected or denied it; so one place can record the
/// ends. What the caller reported with `ended` does not come out again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Nothing stands in the call's way: let the gate decide, then `admit` or `deny`.
    Ready(CallIndex),
    /// Run the call now. It holds a slot until `ended` or `back_off`. It comes out again for every `retry`.
    Start(CallIndex),
    /// The call has ended as `skipped`.
    Skip {
        /// The call that is not run.
        call: CallIndex,
        /// The calls that are the cause.
        because: Because,
    },
    /// The call has ended as `rejected`.
    Reject {
        /// The call that is not run.
        call: CallIndex,
        /// What is wrong with it.
        reason: RejectReason,
    },
    /// The call has ended as `cancelled` while it was not running: before it started, or while it waited to
    /// be tried again.
    Cancel(CallIndex),
    /// Stop the running call, then report how it `ended`.
    Stop(CallIndex),
}

/// Why a call was skipped (`spec/running.md`, "Skipping").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Because {
    /// What ties the call to the direct cause.
    pub link: Link,
    /// The call directly before it on the way to the root.
    pub direct: CallIndex,
    /// The call where it began: one that did not end well and was not skipped itself.
    pub root: CallIndex,
}

/// What ties a skipped call to its direct cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Link {
    /// It depends on that call.
    Dependency,
    /// It was written after that call, in sequential order with `stop_on_error`.
    Order,
}

/// Why a call was rejected (`spec/running.md`, "What rejects a call"). Its `Display` is a sentence for the
/// model.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectReason {
    /// An earlier call of the same turn has this id.
    DuplicateId {
        /// The id.
        id: Arc<str>,
        /// The call that keeps it.
        first: CallIndex,
    },
    /// The turn already holds as many calls as it may.
    TooManyCalls {
        /// The limit.
        limit: u32,
    },
    /// It names its own id as a dependency.
    SelfDependency {
        /// The id.
        id: Arc<str>,
    },
    /// No call has the ids it depends on.
    UnknownIds {
        /// The ids, in the order in which the call names them.
        ids: Vec<Arc<str>>,
    },
    /// It is part of a ring of calls that wait for each other.
    Cycle {
        /// All calls of the ring (or of the rings, where several touch), in order of appearance.
        ring: Arc<[(CallIndex, Arc<str>)]>,
    },
    /// The turn was closed while the call was still being written.
    Unfinished,
    /// Its tool is deferred, and the reply broke off before its end.
    ReplyCut,
    /// The caller found it wrong: an unknown tool, wrong arguments, cut off.
    Wrong(String),
    /// The gate denied it.
    Denied(String),
}

/// A ring can be as long as the turn, and each of its calls carries the sentence.
const NAMED_IN_A_SENTENCE: usize = 8;

fn list<'a>(
    formatter: &mut fmt::Formatter<'_>,
    ids: impl ExactSizeIterator<Item = &'a Arc<str>>,
) -> fmt::Result {
    let count = ids.len();
    for (place, id) in ids.take(NAMED_IN_A_SENTENCE).enumerate() {
        let comma = if place == 0 { "" } else { ", " };
        write!(formatter, "{comma}`{id}`")?;
    }
    match count.saturating_sub(NAMED_IN_A_SENTENCE) {
        0 => Ok(()),
        more => write!(formatter, " and {more} more"),
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // The number of the first call means nothing to a model: it counts over the whole conversation.
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
                    "a turn may hold {limit} {calls}; make this call in the next turn"
                )
            }
            Self::SelfDependency { id } => {
                write!(formatter, "the call depends on itself (`{id}`)")
            }
            Self::UnknownIds { ids } => {
                formatter.write_str("no call has the id ")?;
                list(formatter, ids.iter())
            }
            Self::Cycle { ring } => {
                formatter.write_str("these calls wait for each other: ")?;
                list(formatter, ring.iter().map(|(_, id)| id))
            }
            Self::Unfinished => {
                formatter.write_str("the turn was closed before the call was complete")
            }
            Self::ReplyCut => formatter.write_str(
                "the reply broke off; calls that change something wait for its end; make the call again",
            ),
            Self::Wrong(reason) | Self::Denied(reason) => formatter.write_str(reason),
        }
    }
}
