//! What ids and dependencies alone reject, before anything runs.

use crate::action::{Action, RejectReason};
use crate::judge::Reply;
use crate::plan::Plan;
use crate::policy::{Limits, Order, Tool};

/// A call of one reply, as far as its id and its dependencies matter.
#[derive(Clone, Copy, Debug)]
pub struct Declared<'c> {
    /// Its id.
    pub id: &'c str,
    /// The ids that it depends on.
    pub dependencies: &'c [String],
    /// Whether it is rejected for another reason.
    pub is_rejected: bool,
}

/// The calls of a first reply that a [`Plan`] rejects for their ids and dependencies: duplicate ids, self-dependencies,
/// cycles and unknown ids. Each is named by its place in `calls`.
pub fn dependency_faults<'c>(
    calls: impl IntoIterator<Item = Declared<'c>>,
) -> Vec<(usize, RejectReason)> {
    let mut plan = Plan::new(Limits::default());
    let tool = plan.add_tool(Tool::default());
    // What the plan refuses is rejected already.
    let _ = plan.begin_turn(Order::Graph);
    for call in calls {
        let Ok(index) = plan.declare(call.id) else {
            break;
        };
        let _ = if call.is_rejected {
            plan.reject(index, "")
        } else {
            plan.complete(index, tool, call.dependencies)
        };
    }
    let _ = plan.end_turn(Reply::Whole);
    let mut faults = Vec::new();
    // No call is admitted, so none starts and the actions end.
    while let Some(action) = plan.next_action() {
        if let Action::Reject { call, reason } = action {
            faults.push((call.index(), reason));
        }
    }
    faults.retain(|(_, reason)| !matches!(reason, RejectReason::Wrong(_)));
    faults.sort_by_key(|(call, _)| *call);
    faults
}
