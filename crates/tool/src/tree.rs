//! The nesting of a call's values in its JSON object (`spec/block.md` 7.4 to 7.6).
//!
//! The nodes are in one vector, so building and dropping them needs no recursion.

use std::collections::BTreeSet;
use std::mem;

use indexmap::IndexMap;

use crate::pointer::{Pointer, PointerError, is_index};

pub(crate) type NodeIndex = u32;
pub const ROOT: NodeIndex = 0;

/// The members of an object, in order of appearance.
///
/// Nearly all calls have few arguments, which are found faster without a hash.
#[derive(Clone, Debug, Default)]
pub struct Object {
    /// All members, up to [`FEW`].
    few: Vec<(Box<str>, NodeIndex)>,
    /// All members, if there are more.
    many: IndexMap<Box<str>, NodeIndex>,
}

const FEW: usize = 8;

impl Object {
    pub(crate) fn get(&self, key: &str) -> Option<NodeIndex> {
        let mut few = self.few.iter();
        let found = few.find(|(member, _)| **member == *key);
        let found = found.map(|(_, node)| node);
        found.or_else(|| self.many.get(key)).copied()
    }

    pub(crate) fn len(&self) -> usize {
        self.few.len() + self.many.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, NodeIndex)> {
        let few = self.few.iter().map(|(key, node)| (&**key, *node));
        few.chain(self.many.iter().map(|(key, node)| (&**key, *node)))
    }

    fn retain(&mut self, keep: impl Fn(NodeIndex) -> bool) {
        let all = mem::take(self);
        for (key, node) in all.few.into_iter().chain(all.many) {
            if keep(node) {
                self.push(key, node);
            }
        }
    }

    /// Adds a member whose key is new.
    fn push(&mut self, key: Box<str>, node: NodeIndex) {
        if self.len() < FEW {
            self.few.push((key, node));
        } else {
            self.many.extend(self.few.drain(..));
            self.many.insert(key, node);
        }
    }
}

#[derive(Clone, Debug)]
pub enum Node {
    Object(Object),
    Array(Vec<NodeIndex>),
    /// The value with this index.
    Leaf(usize),
}

const HOLDS_OTHERS: &str = "already holds other arguments";

#[derive(Clone, Debug)]
pub struct Tree {
    nodes: Vec<Node>,
}

impl Default for Tree {
    fn default() -> Self {
        // Most calls have few arguments.
        let mut nodes = Vec::with_capacity(4);
        nodes.push(Node::Object(Object::default()));
        Self { nodes }
    }
}

impl Tree {
    pub fn node(&self, index: NodeIndex) -> Option<&Node> {
        self.nodes.get(index as usize)
    }

    pub fn root(&self) -> impl Iterator<Item = (&str, NodeIndex)> {
        self.root_object().into_iter().flat_map(Object::iter)
    }

    /// Returns the member of the root with this key.
    pub(crate) fn member(&self, key: &str) -> Option<NodeIndex> {
        self.root_object()?.get(key)
    }

    fn root_object(&self) -> Option<&Object> {
        match self.nodes.first() {
            Some(Node::Object(object)) => Some(object),
            _ => None,
        }
    }

    pub fn find(&self, pointer: &Pointer<'_>) -> Option<NodeIndex> {
        pointer.segments.iter().try_fold(ROOT, |node, segment| {
            self.child(node, segment).ok().flatten()
        })
    }

    /// Converts an array to an object with its indices as keys, for parameters that are declared as objects.
    pub(crate) fn make_object(&mut self, index: NodeIndex) {
        let Some(node) = self.nodes.get_mut(index as usize) else {
            return;
        };
        if let Node::Array(items) = node {
            let mut object = Object::default();
            for (index, item) in items.iter().enumerate() {
                object.push(index.to_string().into(), *item);
            }
            *node = Node::Object(object);
        }
    }

    /// Removes values that are members of the root. The others are numbered again.
    pub(crate) fn remove_members(&mut self, leaves: &BTreeSet<usize>) {
        let is_kept = |node: &Node| !matches!(node, Node::Leaf(leaf) if leaves.contains(leaf));
        let kept: Vec<bool> = self.nodes.iter().map(is_kept).collect();
        if let Some(Node::Object(root)) = self.nodes.first_mut() {
            root.retain(|node| kept.get(node as usize).copied().unwrap_or_default());
        }
        let sorted: Vec<usize> = leaves.iter().copied().collect();
        for node in &mut self.nodes {
            if let Node::Leaf(leaf) = node {
                *leaf -= sorted.partition_point(|removed| removed < leaf);
            }
        }
    }

    pub(crate) fn first_leaf(&self, mut index: NodeIndex) -> Option<usize> {
        loop {
            index = match self.node(index)? {
                Node::Leaf(leaf) => return Some(*leaf),
                Node::Array(items) => *items.first()?,
                Node::Object(object) => object.iter().next()?.1,
            };
        }
    }

    /// Adds a node as the next item of a list, or as the member `key` of an object, which must be new.
    pub(crate) fn push(&mut self, parent: NodeIndex, key: &str, node: Node) -> NodeIndex {
        let index = NodeIndex::try_from(self.nodes.len()).unwrap_or(NodeIndex::MAX);
        self.nodes.push(node);
        match self.nodes.get_mut(parent as usize) {
            Some(Node::Object(object)) => object.push(key.into(), index),
            Some(Node::Array(items)) => items.push(index),
            Some(Node::Leaf(_)) | None => {}
        }
        index
    }

    /// Inserts the value `leaf` at a pointer.
    ///
    /// # Errors
    /// Returns an error and leaves the tree unchanged if the location is taken, cannot be reached, or would leave a
    /// gap.
    pub fn insert(&mut self, pointer: &Pointer<'_>, leaf: usize) -> Result<(), PointerError> {
        let (parent, depth) = self.locate(pointer)?;
        self.grow(parent, pointer, depth, leaf)
    }

    /// Returns the deepest existing node of a pointer, and the index of the segment that leaves it.
    ///
    /// # Errors
    /// Returns the errors of [`insert`](Self::insert).
    pub fn locate(&self, pointer: &Pointer<'_>) -> Result<(NodeIndex, usize), PointerError> {
        let mut node = ROOT;
        for (depth, segment) in pointer.segments.iter().enumerate() {
            let Some(child) = self.child(node, segment)? else {
                let mut new = pointer.segments.iter().enumerate().skip(depth + 1);
                return match new.find(|(at, next)| pointer.counts(*at) && **next != "0") {
                    Some((_, gap)) => Err(PointerError::gap(0, gap)),
                    None => Ok((node, depth)),
                };
            };
            node = child;
            if depth + 1 == pointer.segments.len() {
                break;
            }
            if let Some(Node::Leaf(_)) = self.node(node) {
                let value = Pointer::beginning(pointer.text, depth + 1);
                return Err(PointerError::conflict(
                    pointer.text,
                    &format!("passes through the value {value}"),
                ));
            }
        }
        Err(match self.node(node) {
            Some(Node::Leaf(_)) => PointerError::duplicate(pointer.text),
            _ => PointerError::conflict(pointer.text, HOLDS_OTHERS),
        })
    }

    /// Goes one step down. The index after the last item of an array has no child yet; a later one is a gap.
    fn child(&self, node: NodeIndex, segment: &str) -> Result<Option<NodeIndex>, PointerError> {
        match self.node(node) {
            Some(Node::Object(object)) => Ok(object.get(segment)),
            Some(Node::Array(items)) if is_index(segment) => match segment.parse::<usize>() {
                Ok(index) if index <= items.len() => Ok(items.get(index).copied()),
                _ => Err(PointerError::gap(items.len(), segment)),
            },
            Some(Node::Array(_)) => Err(PointerError::invalid_index(segment)),
            Some(Node::Leaf(_)) | None => Ok(None),
        }
    }

    /// Adds the child for the segment at `depth`, and everything below it.
    fn grow(
        &mut self,
        parent: NodeIndex,
        pointer: &Pointer<'_>,
        depth: usize,
        leaf: usize,
    ) -> Result<(), PointerError> {
        let mut node = parent;
        for (offset, segment) in pointer.segments.iter().skip(depth).enumerate() {
            let next = depth + offset + 1;
            let below = if next == pointer.segments.len() {
                Node::Leaf(leaf)
            } else if pointer.counts(next) {
                Node::Array(Vec::new())
            } else {
                Node::Object(Object::default())
            };
            // 10,000 arguments of 64 segments are far below 2^32; custom limits may not be.
            if NodeIndex::try_from(self.nodes.len()).is_err() {
                return Err(PointerError::conflict(pointer.text, HOLDS_OTHERS));
            }
            node = self.push(node, segment, below);
        }
        Ok(())
    }
}
