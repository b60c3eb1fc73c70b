//! The unknown fields of an object, and the order of all its fields.

use std::borrow::Cow;
use std::fmt;

use crate::json::Json;

/// The fields of an object that this crate does not know, each as its JSON text, in their original order.
///
/// Also records the positions of the known fields among them and which were `null`, so that the object is written as
/// it was read.
#[derive(Clone, Default)]
pub struct Unknown<'a> {
    /// While `is_mixed` is false, the known fields, in the order of their declaration, come before these.
    entries: Vec<Entry<'a>>,
    is_mixed: bool,
    /// One bit for each known field that was read.
    seen: u32,
    /// One bit for each known field that was `null`.
    nulls: u32,
}

#[derive(Clone)]
enum Entry<'a> {
    /// A known field, by its position in the declaration.
    Named(u8),
    Field(Cow<'a, str>, Json<'a>),
}

impl<'a> Unknown<'a> {
    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Json<'a>> {
        self.iter()
            .find(|(found, _)| *found == name)
            .map(|(_, value)| value)
    }

    /// Sets a field. A new field is appended.
    pub fn set(&mut self, name: impl Into<Cow<'a, str>>, value: Json<'a>) {
        let name = name.into();
        let same = self.entries.iter_mut().find_map(|entry| match entry {
            Entry::Field(found, value) if *found == name => Some(value),
            _ => None,
        });
        match same {
            Some(found) => *found = value,
            None => self.entries.push(Entry::Field(name, value)),
        }
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.entries
            .retain(|entry| !matches!(entry, Entry::Field(found, _) if found == name));
    }

    /// Iterates over the fields in their original order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Json<'a>)> + Clone {
        self.entries.iter().filter_map(|entry| match entry {
            Entry::Field(name, value) => Some((name.as_ref(), value)),
            Entry::Named(_) => None,
        })
    }

    /// Converts it to an owned value.
    pub fn into_owned(self) -> Unknown<'static> {
        let entries = self.entries.into_iter().map(|entry| match entry {
            Entry::Named(index) => Entry::Named(index),
            Entry::Field(name, value) => {
                Entry::Field(Cow::Owned(name.into_owned()), value.into_owned())
            }
        });
        Unknown {
            entries: entries.collect(),
            is_mixed: self.is_mixed,
            seen: self.seen,
            nulls: self.nulls,
        }
    }

    /// Registers a known field that was read.
    pub(crate) fn note(&mut self, index: u8, is_null: bool) {
        let bit = 1_u32 << index;
        let is_new = self.seen & bit == 0;
        if self.is_mixed {
            if is_new {
                self.entries.push(Entry::Named(index));
            }
        } else if is_new && (self.seen >= bit || !self.entries.is_empty()) {
            // From here on, the order differs from the declaration.
            let before = (0..32).filter(|index| self.seen & (1 << index) != 0);
            self.entries.splice(0..0, before.map(Entry::Named));
            self.entries.push(Entry::Named(index));
            self.is_mixed = true;
        }
        self.seen |= bit;
        self.nulls = if is_null {
            self.nulls | bit
        } else {
            self.nulls & !bit
        };
    }

    /// Registers an unknown field that was read.
    pub(crate) fn push(&mut self, name: Cow<'a, str>, value: Json<'a>) {
        self.entries.push(Entry::Field(name, value));
    }

    /// Omits the known fields that were `null`.
    pub(crate) fn forget_nulls(&mut self) {
        self.nulls = 0;
    }

    /// Returns whether this known field was `null`.
    pub(crate) fn was_null(&self, index: u8) -> bool {
        self.nulls & (1 << index) != 0
    }

    /// Returns the fields to write, in order. `count` fields are known.
    pub(crate) fn layout(&self, count: u8) -> impl Iterator<Item = FieldSlot<'_, 'a>> {
        let has_slot = move |index: &u8| self.is_mixed && self.seen & (1 << index) != 0;
        let others = (0..count).filter(move |index| !has_slot(index));
        let others = others.map(FieldSlot::Named);
        let entries = self.entries.iter().map(|entry| match entry {
            Entry::Named(index) => FieldSlot::Named(*index),
            Entry::Field(name, value) => FieldSlot::Field(name, value),
        });
        // Known fields that were not read are written in declaration order, or at the end.
        let (first, last) = if self.is_mixed {
            (None, Some(others))
        } else {
            (Some(others), None)
        };
        let (first, last) = (first.into_iter().flatten(), last.into_iter().flatten());
        first.chain(entries).chain(last)
    }
}

/// A position in an object that is written.
pub(crate) enum FieldSlot<'s, 'a> {
    Named(u8),
    Field(&'s str, &'s Json<'a>),
}

impl PartialEq for Unknown<'_> {
    /// Compares fields and their order, except for the positions of known ones.
    fn eq(&self, other: &Self) -> bool {
        self.iter().eq(other.iter())
    }
}

impl Eq for Unknown<'_> {}

impl fmt::Debug for Unknown<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_map().entries(self.iter()).finish()
    }
}
