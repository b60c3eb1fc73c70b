//! Cycles of calls that depend on each other.

use std::collections::BTreeSet;

use plaincall_plan::{DeclaredCall, RejectReason, dependency_errors};

/// Returns the cycles among calls, each call given by its dependencies.
fn cycles(successors: &[Vec<u32>]) -> BTreeSet<Vec<u32>> {
    let ids: Vec<String> = (0..successors.len()).map(|id| id.to_string()).collect();
    let named = successors
        .iter()
        .map(|list| list.iter().map(u32::to_string).collect());
    let named: Vec<Vec<String>> = named.collect();
    let calls = ids.iter().zip(&named);
    let calls = calls.map(|(id, dependencies)| DeclaredCall::new(id, dependencies));
    let errors = dependency_errors(calls).into_iter();
    let cycles = errors.filter_map(|(_, reason)| match reason {
        RejectReason::Cycle { calls } => Some(calls.iter().map(|(call, _)| call.get()).collect()),
        _ => None,
    });
    cycles.collect()
}

/// Checks the cycles (`0 1 | 4 5`) of a graph with these edges (`0>1 1>0`).
fn check(nodes: usize, edges: &str, expected: &str) {
    let mut successors = vec![Vec::new(); nodes];
    for edge in edges.split_whitespace() {
        let (from, to) = edge.split_once('>').expect("two calls");
        successors[from.parse::<usize>().expect("a number")].push(to.parse().expect("a number"));
    }
    let found = cycles(&successors);
    let found: Vec<String> = found
        .iter()
        .map(|cycle| {
            let names: Vec<String> = cycle.iter().map(u32::to_string).collect();
            names.join(" ")
        })
        .collect();
    assert_eq!(found.join(" | "), expected, "{edges}");
}

#[test]
fn small_graphs() {
    for (nodes, edges, expected) in [
        (0, "", ""),
        (3, "0>1 1>2", ""),
        (1, "0>0", ""),
        (2, "0>1 1>0", "0 1"),
        (3, "0>1 1>2 2>0", "0 1 2"),
        (4, "3>2 2>1 1>3", "1 2 3"),
        // A node between two cycles is in neither.
        (5, "0>1 1>0 1>2 2>3 3>4 4>3", "0 1 | 3 4"),
        // Two cycles that share a node count as one.
        (3, "0>1 1>0 1>2 2>1", "0 1 2"),
        // A node with an edge to a component that is already known.
        (4, "0>1 1>0 2>1 2>3 3>2", "0 1 | 2 3"),
        (3, "0>7 0>1 1>0", "0 1"),
    ] {
        check(nodes, edges, expected);
    }
}

#[test]
fn a_long_cycle() {
    let count = 3_000_u32;
    let mut successors: Vec<Vec<u32>> = (0..count).map(|node| vec![(node + 1) % count]).collect();
    assert_eq!(cycles(&successors), BTreeSet::from([(0..count).collect()]));
    successors[5].clear();
    assert!(cycles(&successors).is_empty());
}
