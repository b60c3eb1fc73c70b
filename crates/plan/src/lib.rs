//! The dependency graph of tool calls as a pure state machine: it decides which calls start, and which are skipped or
//! rejected.
//!
//! A [`Plan`] holds the calls of one conversation, with their ids and dependencies. It has no clock, runs no tools and does no
//! I/O: the caller reports when a call was written, what the gate decided and how a call ended, and takes [`Action`]s from a
//! queue.
//!
//! A call goes through the states `writing -> waiting -> ready -> admitted -> running -> ended` ([`State`]). A failed call
//! that is retried goes from `running` through `backing off` to `admitted`. `spec/running.md` in the repository defines the
//! rules. Each input takes constant time for each dependency, plus logarithmic time in the length of the queue for a call
//! that waits for a slot. Nothing recurses, so a chain of dependencies may have any length.
//!
//! ```
//! use plaincall_plan::{Action, Because, Limits, Link, Order, Outcome, Plan, Reply, State, Status, Tool};
//!
//! let mut plan = Plan::new(Limits::default());
//! let tool = plan.add_tool(Tool::default());
//! plan.begin_turn(Order::Graph)?;
//! let fetch = plan.declare("fetch")?;
//! plan.complete(fetch, tool, [""; 0])?;
//! let merge = plan.declare("merge")?;
//! plan.complete(merge, tool, ["fetch"])?;
//! plan.end_turn(Reply::Complete)?;
//!
//! assert_eq!(plan.next_action(), Some(Action::Ready(fetch)));
//! plan.admit(fetch)?;
//! assert_eq!(plan.next_action(), Some(Action::Start(fetch)));
//! plan.finish(fetch, Outcome::Error)?;
//! let Some(Action::Skip { call, because, .. }) = plan.next_action() else { panic!("`merge` is skipped") };
//! assert_eq!((call, because.link, because.root), (merge, Link::Dependency, fetch));
//! assert_eq!(plan.next_action(), None);
//! assert_eq!(plan.call(merge).map(|call| call.state()), Some(State::Ended(Status::Skipped)));
//! # Ok::<(), plaincall_plan::PlanError>(())
//! ```

mod action;
mod call_failure;
mod cycles;
mod dependency_errors;
mod edges;
mod ids;
#[cfg(test)]
mod linear;
mod plan;
mod plan_error;
mod policy;
mod propagation;
mod reply_plan;
mod retry;
mod sequence;
mod slots;
mod state;
mod turn_end;
mod view;

pub use action::{Action, Because, Link, RejectReason};
pub use call_failure::{CallFailure, format_duration};
pub use dependency_errors::{DeclaredCall, dependency_errors};
pub use plan::Plan;
pub use plan_error::PlanError;
pub use policy::{Limits, Order, Tool, ToolIndex};
pub use reply_plan::{PlannedCall, ReplyAction, ReplyPlan};
pub use state::{CallIndex, Counts, Outcome, State, Status, StatusCounts};
pub use turn_end::Reply;
pub use view::{CallView, Dependency};

/// No index: no table has an element at this index, so `get` returns `None`.
const NONE: u32 = u32::MAX;
