//! Rings in a graph.

use crate::NONE;

/// The groups of nodes that can all reach each other, each of at least two nodes and in rising order.
///
/// Tarjan's algorithm with the stack of calls as a vector, in time linear in nodes and edges. Nodes are the
/// indices of `successors`; successors that are no node are left out. An edge from a node to itself makes no
/// group.
pub(crate) fn rings(successors: &[Vec<u32>]) -> Vec<Vec<u32>> {
    let mut search = Search {
        nodes: vec![Node::default(); successors.len()],
        ..Search::default()
    };
    for root in 0..successors.len() {
        search.explore(u32::try_from(root).unwrap_or(NONE), successors);
    }
    search.rings
}

#[derive(Clone, Copy, Default)]
struct Node {
    /// When it was reached, from 1; 0 for not yet.
    reached: u32,
    /// The earliest node on the path that it can lead back to, by `reached`.
    lowest: u32,
    /// It is known which group it belongs to.
    settled: bool,
}

#[derive(Default)]
struct Search {
    nodes: Vec<Node>,
    /// The path from the root: nodes, each with the place of its next successor.
    path: Vec<(u32, usize)>,
    /// Nodes that were reached and are in no group yet.
    open: Vec<u32>,
    clock: u32,
    rings: Vec<Vec<u32>>,
}

impl Search {
    fn explore(&mut self, root: u32, successors: &[Vec<u32>]) {
        self.enter(root);
        while let Some((node, place)) = self.path.last_mut() {
            let node = *node;
            let next = successors
                .get(node as usize)
                .and_then(|list| list.get(*place));
            *place += 1;
            match next {
                Some(&next) => {
                    if !self.enter(next) {
                        let reached = self.node(next).filter(|next| !next.settled);
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

    /// Goes on to a node, unless it has been reached before or is none.
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

    /// Goes back from the path's last node, whose successors have all been seen.
    fn leave(&mut self) {
        let Some((node, _)) = self.path.pop() else {
            return;
        };
        let Some(entry) = self.node(node) else { return };
        if let Some(&(before, _)) = self.path.last() {
            self.lower(before, entry.lowest);
        }
        if entry.lowest == entry.reached {
            // It leads back no further: with the open nodes above it, it is a group.
            let start = self.open.iter().rposition(|&open| open == node);
            let mut group = self.open.split_off(start.unwrap_or(0));
            for &member in &group {
                if let Some(entry) = self.nodes.get_mut(member as usize) {
                    entry.settled = true;
                }
            }
            if group.len() > 1 {
                group.sort_unstable();
                self.rings.push(group);
            }
        }
    }
}
