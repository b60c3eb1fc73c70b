//! The graph of tool calls as a pure state machine: ids go in; start, skip and reject come out.
//!
//! A [`Plan`] serves one conversation of several turns. It knows calls, their ids and what they depend on.
//! It knows nothing of tools' work, of time and of input and output: the caller says when a call has been
//! written, what the gate decided and how a call ended, and takes the [`Action`]s from a queue.
//!
//! A call goes `writing -> waiting -> ready -> admitted -> running -> ended` ([`State`]); a call that failed
//! and is to be tried again goes from `running` by way of `backing off` to `admitted`. The rules are those of
//! `spec/running.md`. Every input costs a constant time for each dependency, plus the logarithm of the
//! queue's length for a call that waits for a slot. Nothing recurses, so a chain may have any length.
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
//! plan.end_turn(Reply::Whole)?;
//!
//! assert_eq!(plan.next_action(), Some(Action::Ready(fetch)));
//! plan.admit(fetch)?;
//! assert_eq!(plan.next_action(), Some(Action::Start(fetch)));
//! plan.ended(fetch, Outcome::Error)?;
//! let because = Because { link: Link::Dependency, direct: fetch, root: fetch };
//! assert_eq!(plan.next_action(), Some(Action::Skip { call: merge, because }));
//! assert_eq!(plan.next_action(), None);
//! assert_eq!(plan.call(merge).map(|call| call.state()), Some(State::Ended(Status::Skipped)));
//! # Ok::<(), plaincall_plan::PlanError>(())
//! ```

mod action;
mod cycles;
mod edges;
mod faults;
mod ids;
mod judge;
#[cfg(test)]
mod linear;
mod news;
mod plan;
mod plan_error;
mod policy;
mod restart;
mod sequence;
mod slots;
mod state;
mod view;

pub use action::{Action, Because, Link, RejectReason};
pub use faults::{Declared, dependency_faults};
pub use judge::Reply;
pub use plan::Plan;
pub use plan_error::PlanError;
pub use policy::{Limits, Order, Tool, ToolIndex};
pub use state::{CallIndex, Counts, Outcome, State, Status};
pub use view::{CallView, Dependency};

/// "No such place" in the tables: no vector ever has an element there, so `get` answers `None`.
const NONE: u32 = u32::MAX;
