//! Arguments placed by the schema of a tool (`spec/block.md` 7.6).

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use plaincall_syntax::is_blank;

use crate::ArgumentError;
use crate::Arguments;
use crate::Limits;
use crate::ToolSpec;
use crate::arguments::Leaf;
use crate::pointer::{Pointer, PointerError, is_bad_index, is_index, segments, shown, unescape};
use crate::schema::{AllowedValues, SchemaReader};

impl Arguments {
    /// Creates arguments for a tool from pairs of pointer and text. Where its schema requires an object, a segment that
    /// looks like an index is a key.
    ///
    /// # Errors
    /// Returns the errors of [`from_pairs`](Self::from_pairs).
    pub fn from_pairs_for<'t>(
        tool: &ToolSpec,
        pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, ArgumentError> {
        Self::from_pairs_within(&Limits::default(), tool, pairs)
    }

    /// Like [`from_pairs_for`](Self::from_pairs_for), with the depth of these limits.
    ///
    /// # Errors
    /// Returns the errors of [`from_pairs`](Self::from_pairs).
    pub fn from_pairs_within<'t>(
        limits: &Limits,
        tool: &ToolSpec,
        pairs: impl IntoIterator<Item = (&'t str, &'t str)>,
    ) -> Result<Self, ArgumentError> {
        let leaves = pairs
            .into_iter()
            .map(|(pointer, text)| (0, Leaf::own(shown(pointer).0, text)));
        let unplaced = Self {
            unplaced: leaves.collect(),
            ..Self::default()
        };
        let (placed, misplaced) = unplaced.placed_for(tool, limits.depth());
        match misplaced.into_iter().next() {
            None => Ok(placed),
            Some((leaf, error)) => Err(ArgumentError::at(&leaf.pointer, error.message)),
        }
    }

    #[doc(hidden)]
    /// Returns the values placed by the schema of a tool, and those that it cannot place either.
    pub fn placed_for(&self, tool: &ToolSpec, depth: usize) -> (Self, Vec<(&Leaf, PointerError)>) {
        let mut fixed = Self {
            source: Arc::clone(&self.source),
            ..Self::default()
        };
        let mut misplaced = Vec::new();
        let reader = tool.schema().reader();
        let root = reader.root();
        let pointers = self.in_order().map(|leaf| &*leaf.pointer);
        let lists = ListsInUnions::of(pointers, &reader, &root);
        for leaf in self.in_order() {
            let placed =
                by_schema(&leaf.pointer, depth, &reader, &root, &lists).and_then(|pointer| {
                    let number = fixed.leaves.len();
                    fixed.tree_mut().insert(&pointer, number)
                });
            match placed {
                Ok(()) => fixed.leaves.push(leaf.clone()),
                Err(error) => misplaced.push((leaf, error)),
            }
        }
        (fixed, misplaced)
    }
}

/// Parses a pointer; a schema decides which segments are keys. Where it allows both, they are keys unless `lists` has
/// counted them as items of a list.
fn by_schema<'t, 's>(
    text: &'t str,
    depth: usize,
    reader: &SchemaReader<'s>,
    root: &AllowedValues<'s>,
    lists: &ListsInUnions,
) -> Result<Pointer<'t>, PointerError> {
    let segments = segments(text, depth)?;
    let mut keys = Vec::with_capacity(segments.len());
    let mut allowed = Cow::Borrowed(root);
    for (at, segment) in segments.iter().enumerate() {
        let is_key = allowed.has_keys_only()
            || (allowed.states_keys() && !lists.is_list(Pointer::beginning(text, at)));
        if segment.contains(is_blank) && !allowed.spells(segment) {
            return Err(PointerError::value_on_line(text));
        }
        if !is_key && is_bad_index(segment) {
            return Err(PointerError::invalid_index(segment));
        }
        keys.push(is_key);
        allowed = Cow::Owned(reader.under(&allowed, segment));
    }
    Ok(Pointer {
        text,
        segments,
        keys,
    })
}

/// The locations where a schema allows a list as well as an object, and the segments look like those of a list: they
/// count from 0 in the order in which they appear. At other such locations, segments are keys.
#[derive(Debug, Default)]
struct ListsInUnions {
    /// The number of items by the pointer of the list; `None` if it is not a list.
    counts: HashMap<Box<str>, Option<usize>>,
}

impl ListsInUnions {
    /// Examines pointers that [`shown`] has prepared, in the order in which they were written.
    fn of<'t, 's>(
        pointers: impl Iterator<Item = &'t str>,
        reader: &SchemaReader<'s>,
        root: &AllowedValues<'s>,
    ) -> Self {
        let mut found = Self::default();
        if root.alternatives.is_empty() {
            return found;
        }
        for pointer in pointers {
            let mut allowed = Cow::Borrowed(root);
            for (at, segment) in pointer.split('/').map(unescape).enumerate() {
                if at > 0 && allowed.states_keys() && !allowed.has_keys_only() {
                    found.note(Pointer::beginning(pointer, at), &segment);
                }
                allowed = Cow::Owned(reader.under(&allowed, &segment));
            }
        }
        found
    }

    fn note(&mut self, list: &str, segment: &str) {
        let count = match self.counts.get_mut(list) {
            Some(count) => count,
            None => self.counts.entry(list.into()).or_insert(Some(0)),
        };
        *count = count.and_then(|count| match segment.parse::<usize>() {
            Ok(index) if is_index(segment) && index < count => Some(count),
            Ok(index) if is_index(segment) && index == count => Some(count + 1),
            _ => None,
        });
    }

    fn is_list(&self, pointer: &str) -> bool {
        self.counts.get(pointer).is_some_and(Option::is_some)
    }
}
