//! Checks of the ids and dependencies of a reply that is not run.

use crate::action::{Action, RejectReason};
use crate::plan::Plan;
use crate::policy::{Limits, Order, Tool};
use crate::turn_end::Reply;

/// The id and the dependencies of a call.
#[derive(Clone, Copy, Debug)]
pub struct DeclaredCall<'c> {
    id: &'c str,
    dependencies: &'c [String],
    is_invalid: bool,
}

impl<'c> DeclaredCall<'c> {
    /// A call with this id that depends on the calls with these ids.
    pub fn new(id: &'c str, dependencies: &'c [String]) -> Self {
        Self {
            id,
            dependencies,
            is_invalid: false,
        }
    }

    /// Sets whether the call is invalid for another reason. Then its dependencies are not checked.
    pub fn invalid(mut self, is_invalid: bool) -> Self {
        self.is_invalid = is_invalid;
        self
    }
}

/// Returns the calls of a conversation's first reply that a [`Plan`] rejects because of their ids or dependencies:
/// duplicate ids, self-dependencies, cycles and unknown ids. Each call is given by its index in `calls`.
pub fn dependency_errors<'c>(
    calls: impl IntoIterator<Item = DeclaredCall<'c>>,
) -> Vec<(usize, RejectReason)> {
    let mut plan = Plan::new(Limits::default());
    let tool = plan.add_tool(Tool::default());
    let _ = plan.begin_turn(Order::Graph);
    for call in calls {
        let Ok(index) = plan.declare(call.id) else {
            break;
        };
        // The plan returns an error for a call that it has rejected already.
        let _ = if call.is_invalid {
            plan.reject(index, "")
        } else {
            plan.complete(index, tool, call.dependencies)
        };
    }
    let _ = plan.end_turn(Reply::Complete);
    let mut errors = Vec::new();
    // No call is admitted, so no call starts, and the actions end.
    while let Some(action) = plan.next_action() {
        if let Action::Reject { call, reason } = action {
            errors.push((call.index(), reason));
        }
    }
    errors.retain(|(_, reason)| !matches!(reason, RejectReason::Invalid(_)));
    errors.sort_by_key(|(call, _)| *call);
    errors
}
