//! The plan of one reply.

use plaincall_plan::{PlannedCall, ReplyAction, ReplyPlan};

/// Admits all calls that are ready, and returns the other actions.
fn actions(plan: &mut ReplyPlan) -> Vec<ReplyAction> {
    let mut actions = Vec::new();
    while let Some(action) = plan.next_action() {
        if let ReplyAction::Ready(call) = action {
            plan.admit(call).expect("it is ready");
        } else {
            actions.push(action);
        }
    }
    actions
}

#[test]
fn an_exclusive_call_runs_alone() {
    let mut plan = ReplyPlan::new(None).expect("a plan");
    for (id, is_exclusive) in [("a", false), ("b", true), ("c", false)] {
        let mut call = PlannedCall::new(id);
        call.is_exclusive = is_exclusive;
        plan.add(call).expect("few calls");
    }
    plan.end().expect("it has not ended");
    for (number, call) in (0..3).zip(0..) {
        assert_eq!(actions(&mut plan), [ReplyAction::Start(number)]);
        plan.finish(call, true).expect("it runs");
    }
}
