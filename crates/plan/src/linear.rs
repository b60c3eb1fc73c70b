//! The cost of a plan, counted in visits to edges, is linear in its edges.

use crate::{Action, Counts, Limits, Order, Outcome, Plan, Reply, Tool};

/// Returns the dependencies of a call, given the number of calls. Larger ones are forward references.
type Shape = fn(u32, u32) -> Vec<u32>;

/// Three dependencies on earlier calls, distributed by a fixed hash.
fn spread(call: u32, _: u32) -> Vec<u32> {
    let near = |salt: u32| {
        call.wrapping_mul(0x9E37_79B9)
            .wrapping_add(salt.wrapping_mul(0x85EB_CA6B))
            .rotate_left(13)
            % call
    };
    if call == 0 {
        Vec::new()
    } else {
        vec![near(1), near(2), near(3)]
    }
}

const SHAPES: [(&str, Shape); 6] = [
    ("spread", spread),
    ("chain", |call, _| call.checked_sub(1).into_iter().collect()),
    ("forward chain", |call, count| {
        (call + 1 < count).then_some(call + 1).into_iter().collect()
    }),
    ("ladder", |call, _| (call.saturating_sub(3)..call).collect()),
    ("fan", |call, _| vec![0; usize::from(call > 0)]),
    ("cycle", |call, count| vec![(call + 1) % count]),
];

/// How the first call that starts ends. All others end `ok`.
#[derive(Clone, Copy)]
enum First {
    Ends(Outcome),
    /// It fails, and its dependents still run.
    Tolerated,
    /// It fails once and is retried, like all other calls.
    Retried,
}

/// Runs a plan to its end. Returns its counts, the number of edges and the number of visits to them.
fn play(shape: Shape, count: u32, tool: Tool, first: First) -> (Counts, u64, u64) {
    let mut plan = Plan::new(Limits::default());
    let tool = plan.add_tool(Tool {
        tolerated: matches!(first, First::Tolerated),
        ..tool
    });
    plan.begin_turn(Order::Graph).unwrap();
    for number in 0..count {
        let call = plan.declare(&number.to_string()).unwrap();
        let ids = shape(number, count).into_iter().map(|id| id.to_string());
        plan.complete(call, tool, ids).unwrap();
    }
    plan.end_turn(Reply::Complete).unwrap();
    let mut outcome = match first {
        First::Ends(outcome) => outcome,
        First::Tolerated => Outcome::Error,
        First::Retried => Outcome::Ok,
    };
    let mut has_failed = vec![!matches!(first, First::Retried); count as usize];
    while let Some(action) = plan.next_action() {
        match action {
            Action::Ready(call) => plan.admit(call).unwrap(),
            Action::Start(call) if !has_failed[call.index()] => {
                has_failed[call.index()] = true;
                plan.back_off(call).unwrap();
                plan.retry(call).unwrap();
            }
            Action::Start(call) => {
                plan.finish(call, outcome).unwrap();
                outcome = Outcome::Ok;
            }
            _ => {}
        }
    }
    (
        plan.counts(),
        u64::from(plan.edges.len()),
        plan.edges.visits,
    )
}

#[test]
fn the_cost_is_linear() {
    let deferred = Tool {
        deferred: true,
        ..Tool::default()
    };
    for (tool, first) in [
        (Tool::default(), First::Ends(Outcome::Ok)),
        (Tool::default(), First::Ends(Outcome::Error)),
        (Tool::default(), First::Tolerated),
        (deferred, First::Retried),
    ] {
        for (name, shape) in SHAPES {
            let costs = [5_000, 20_000].map(|count| {
                let (counts, edges, visits) = play(shape, count, tool, first);
                assert_eq!(counts.ended.total(), count, "{name}");
                // A forward reference is bound, then its target is grounded, then its target ends.
                assert!(visits <= 3 * edges, "{name}: {visits} for {edges} edges");
                assert!(visits >= edges, "{name}: {visits} for {edges} edges");
                visits
            });
            assert!(costs[1] <= 4 * costs[0] + 100, "{name}: {costs:?}");
        }
    }
}

/// Compares a turn of `count` calls with one that is ten times as long.
fn check_three_dependencies(count: u32) {
    let all_ok = First::Ends(Outcome::Ok);
    let (small, _, few) = play(spread, count, Tool::default(), all_ok);
    let (large, edges, many) = play(spread, 10 * count, Tool::default(), all_ok);
    assert_eq!((small.ended.ok, large.ended.ok), (count, 10 * count));
    assert!(edges * 100 > u64::from(10 * count) * 295, "{edges}");
    assert!(many <= 2 * edges, "{many} visits");
    assert!(many * 100 <= few * 1_010, "{few} visits, then {many}");
}

#[test]
fn three_dependencies_of_many_calls() {
    check_three_dependencies(20_000);
}

#[test]
#[ignore = "it takes seconds"]
fn three_dependencies_up_to_a_million_calls() {
    check_three_dependencies(100_000);
}
