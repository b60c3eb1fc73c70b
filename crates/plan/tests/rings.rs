//! The rings that a plan finds among calls that wait for each other.

use std::collections::BTreeSet;

use plaincall_plan::{Declared, RejectReason, dependency_faults};

/// The rings among calls, each call given by those that it waits for.
fn rings(successors: &[Vec<u32>]) -> BTreeSet<Vec<u32>> {
    let ids: Vec<String> = (0..successors.len()).map(|id| id.to_string()).collect();
    let named = successors
        .iter()
        .map(|list| list.iter().map(u32::to_string).collect());
    let named: Vec<Vec<String>> = named.collect();
    let calls = ids.iter().zip(&named).map(|(id, dependencies)| Declared {
        id,
        dependencies,
        is_rejected: false,
    });
    let faults = dependency_faults(calls).into_iter();
    let rings = faults.filter_map(|(_, reason)| match reason {
        RejectReason::Cycle { ring } => Some(ring.iter().map(|(call, _)| call.get()).collect()),
        _ => None,
    });
    rings.collect()
}

/// Edges as `0>1 1>0`, rings as `0 1 | 4 5`.
fn check(nodes: usize, edges: &str, expected: &str) {
    let mut successors = vec![Vec::new(); nodes];
    for edge in edges.split_whitespace() {
        let (from, to) = edge.split_once('>').expect("two calls");
        successors[from.parse::<usize>().expect("a number")].push(to.parse().expect("a number"));
    }
    let found = rings(&successors);
    let found: Vec<String> = found
        .iter()
        .map(|ring| {
            let names: Vec<String> = ring.iter().map(u32::to_string).collect();
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
        // A node between two rings is in neither.
        (5, "0>1 1>0 1>2 2>3 3>4 4>3", "0 1 | 3 4"),
        // Two rings that share a node are one group.
        (3, "0>1 1>0 1>2 2>1", "0 1 2"),
        // A node seen from a group that is already settled.
        (4, "0>1 1>0 2>1 2>3 3>2", "0 1 | 2 3"),
        (3, "0>7 0>1 1>0", "0 1"),
    ] {
        check(nodes, edges, expected);
    }
}

#[test]
fn a_long_ring() {
    let count = 3_000_u32;
    let mut successors: Vec<Vec<u32>> = (0..count).map(|node| vec![(node + 1) % count]).collect();
    assert_eq!(rings(&successors), BTreeSet::from([(0..count).collect()]));
    successors[5].clear();
    assert!(rings(&successors).is_empty());
}
