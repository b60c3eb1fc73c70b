//! All dependencies in one table, with linked lists through it.

use crate::NONE;

/// One dependency of one call.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Edge {
    /// The id of the dependency, as a number of [`Ids`](crate::ids::Ids).
    pub(crate) name: u32,
    /// The call with this id, or [`NONE`].
    pub(crate) target: u32,
    /// The call that depends on it.
    pub(crate) dependent: u32,
    /// The next edge of the list that contains this edge, or [`NONE`].
    next: u32,
}

/// A list of edges: those to one call, or those to an id that has not appeared yet. They are in order of insertion, so calls
/// become ready in order of appearance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeList {
    /// The first edge, or [`NONE`]. [`Edges::step`] returns the others.
    pub(crate) first: u32,
    last: u32,
}

impl EdgeList {
    pub(crate) const EMPTY: Self = Self {
        first: NONE,
        last: NONE,
    };
}

/// All edges of the conversation. Those of one call are adjacent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Edges {
    all: Vec<Edge>,
    /// The number of visits to edges. Tests check it.
    #[cfg(test)]
    pub(crate) visits: u64,
}

impl Edges {
    pub(crate) fn len(&self) -> u32 {
        u32::try_from(self.all.len()).unwrap_or(NONE)
    }

    /// Adds an edge that is in no list.
    pub(crate) fn push(&mut self, name: u32, dependent: u32, target: u32) {
        self.all.push(Edge {
            name,
            target,
            dependent,
            next: NONE,
        });
    }

    /// Returns the edges of one call.
    pub(crate) fn of(&self, range: (u32, u32)) -> &[Edge] {
        let range = range.0 as usize..range.1 as usize;
        self.all.get(range).unwrap_or_default()
    }

    pub(crate) fn get(&self, edge: u32) -> Option<Edge> {
        self.all.get(edge as usize).copied()
    }

    pub(crate) fn bind(&mut self, edge: u32, target: u32) {
        if let Some(edge) = self.all.get_mut(edge as usize) {
            edge.target = target;
        }
    }

    /// Returns the edge at the cursor, and advances the cursor to the next edge of the list.
    pub(crate) fn step(&mut self, cursor: &mut u32) -> Option<Edge> {
        let edge = self.get(*cursor)?;
        *cursor = edge.next;
        #[cfg(test)]
        {
            self.visits += 1;
        }
        Some(edge)
    }

    /// Appends an edge that is in no list to a list.
    pub(crate) fn append(&mut self, list: &mut EdgeList, edge: u32) {
        match self.all.get_mut(list.last as usize) {
            Some(end) => end.next = edge,
            None => list.first = edge,
        }
        list.last = edge;
    }
}
