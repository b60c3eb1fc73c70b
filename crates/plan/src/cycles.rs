//! Cycles in a graph.

use crate::NONE;

/// Returns the strongly connected components of at least two nodes, each in ascending order.
///
/// Tarjan's algorithm without recursion, in time linear in nodes and edges. Nodes are the indices of `successors`. Successors
/// that are not nodes are ignored, and so is an edge from a node to itself.
pub(crate) fn cycles(successors: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut search = Search {
        nodes: vec![Node::default(); successors.len()],
        ..Search::default()
    };
    for root in 0..successors.len() {
        search.explore(u32::try_from(root).unwrap_or(NONE), successors);
    }
    search.cycles
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// The order in which it was reached, from 1, or 0.
    reached: u32,
    /// The smallest `reached` of the nodes on the path that it leads back to.
    lowest: u32,
    /// Whether its component is known.
    is_assigned: bool,
}

#[derive(Default)]
struct Search {
    nodes: Vec<Node>,
    /// The path from the root: nodes, each with the position of its next successor.
    path: Vec<(u32, usize)>,
    /// Nodes that were reached and are in no component yet.
    open: Vec<u32>,
    clock: u32,
    cycles: Vec<Vec<u32>>,
}

impl Search {
    fn explore(&mut self, root: u32, successors: &[Vec<u32>]) {
        self.enter(root);
        while let Some((node, position)) = self.path.last_mut() {
            let node = *node;
            let next = successors
                .get(node as usize)
                .and_then(|list| list.get(*position));
            *position += 1;
            match next {
                Some(&next) => {
                    if !self.enter(next) {
                        let reached = self.node(next).filter(|next| !next.is_assigned);
                        self.lower(node, reached.map_or(NONE, |next| next.reached));
                    }
                }
                None => self.leave(),
            }
        }
    }

    fn node(&self, node: u32) -> Option<Node> {
        self.nodes.get(node as usize).copied()
    }

    /// Adds a node to the path, if it exists and was not reached before. Returns whether it was added.
    fn enter(&mut self, node: u32) -> bool {
        match self.nodes.get_mut(node as usize) {
            Some(entry) if entry.reached == 0 => {
                self.clock += 1;
                entry.reached = self.clock;
                entry.lowest = self.clock;
                self.path.push((node, 0));
                self.open.push(node);
                true
            }
            _ => false,
        }
    }

    fn lower(&mut self, node: u32, lowest: u32) {
        if let Some(entry) = self.nodes.get_mut(node as usize) {
            entry.lowest = entry.lowest.min(lowest);
        }
    }

    /// Removes the last node of the path, after all its successors.
    fn leave(&mut self) {
        let Some((node, _)) = self.path.pop() else {
            return;
        };
        let Some(entry) = self.node(node) else { return };
        if let Some(&(before, _)) = self.path.last() {
            self.lower(before, entry.lowest);
        }
        if entry.lowest == entry.reached {
            // It leads back no further: it is a component, with the open nodes after it.
            let start = self.open.iter().rposition(|&open| open == node);
            let mut component = self.open.split_off(start.unwrap_or(0));
            for &member in &component {
                if let Some(entry) = self.nodes.get_mut(member as usize) {
                    entry.is_assigned = true;
                }
            }
            if component.len() > 1 {
                component.sort_unstable();
                self.cycles.push(component);
            }
        }
    }
}
