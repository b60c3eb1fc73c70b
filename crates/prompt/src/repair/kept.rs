//! The parts of a call that its example keeps, and the placeholders in place of the others.

use std::collections::{HashMap, HashSet};

use plaincall_syntax::{Dialect, Escaper};
use serde_json::Value;

use crate::repair::placeholder::{as_before, bytes, is_placeholder};
use plaincall_names::pointers::{escape, unescape};
use plaincall_reply::CallError;
use plaincall_tool::ReplyDiagnostic;
use plaincall_tool::schema::{AllowedValues, SchemaReader};

/// A longer value is not repeated. In bytes.
const LONGEST_VALUE: usize = 200;

/// Errors besides those of binding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wrong {
    /// Whether the end of its last value is not known.
    pub(super) is_truncated: bool,
    pub(super) has_taken_id: bool,
}

/// The parts of the call to keep.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Keep {
    /// All valid parts.
    Parts,
    /// The arguments without any error.
    Arguments,
    /// Nothing.
    Nothing,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Slot {
    Kept(String),
    Placeholder(String),
}

pub(super) struct Spelled {
    pub(super) texts: Texts,
    pub(super) placeholders: Vec<String>,
    pub(super) omitted: usize,
}

pub(super) enum Texts {
    /// Pointer and text.
    Block(Vec<(String, String)>),
    Emoji {
        raw_args: String,
        body: String,
    },
}

impl Spelled {
    pub(super) fn block(arguments: Vec<(String, Slot)>, omitted: usize) -> Self {
        let is_placeholder = |slot: &Slot| matches!(slot, Slot::Placeholder(_));
        let placeholders = arguments.iter().filter(|(_, slot)| is_placeholder(slot));
        let placeholders = placeholders.map(|(pointer, _)| pointer.clone()).collect();
        let texts = arguments.into_iter().map(|(pointer, slot)| match slot {
            Slot::Kept(text) | Slot::Placeholder(text) => (pointer, text),
        });
        Self {
            texts: Texts::Block(texts.collect()),
            placeholders,
            omitted,
        }
    }
}

impl Wrong {
    pub(super) fn of(error: &CallError) -> Self {
        Self {
            is_truncated: error.is_about_its_end(),
            has_taken_id: matches!(error, CallError::DuplicateId(_)),
        }
    }
}

pub(super) struct Keeper {
    all: Escaper,
    own: Option<Escaper>,
}

impl Keeper {
    pub(super) fn new(dialect: &Dialect, own: &Dialect) -> Option<Self> {
        Some(Self {
            all: Escaper::new(dialect).ok()?,
            own: if own.is_escaped() {
                Some(Escaper::new(own).ok()?)
            } else {
                None
            },
        })
    }

    /// Returns the text, or a placeholder if it is long or contains a marker that the example could not escape.
    pub(super) fn slot(&self, text: &str) -> Slot {
        if text.len() > LONGEST_VALUE {
            return Slot::Placeholder(as_before(&bytes(text.len())));
        }
        if self.is_safe(text) {
            Slot::Kept(text.to_owned())
        } else {
            Slot::Placeholder(as_before("a string with a marker"))
        }
    }

    /// Returns `true` if a text contains no marker when it is rendered as a value or body.
    pub(super) fn is_safe(&self, text: &str) -> bool {
        let escaped = match &self.own {
            Some(own) => own.escape(text),
            None => text.into(),
        };
        self.all.escape(text) == escaped
    }

    /// Returns `true` if a text contains no marker, for dialects without an escape.
    pub(super) fn is_free(&self, text: &str) -> bool {
        self.all.escape(text) == text
    }
}

/// Returns `true` if one of two pointers is equal to the other or a prefix of it.
pub(super) fn is_related(one: &str, other: &str) -> bool {
    let is_in = |inner: &str, outer: &str| {
        inner
            .strip_prefix(outer)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    is_in(one, other) && !other.is_empty() || is_in(other, one) && !one.is_empty()
}

pub(super) fn key_of(pointer: &str) -> String {
    unescape(pointer.split('/').next().unwrap_or_default()).into_owned()
}

pub(super) fn allowed_at<'s>(
    reader: &SchemaReader<'s>,
    root: &AllowedValues<'s>,
    pointer: &str,
) -> AllowedValues<'s> {
    let mut allowed = root.clone();
    for segment in pointer.split('/').map(unescape) {
        allowed = reader.under(&allowed, &segment);
    }
    allowed
}

/// Returns `true` if a union is above this location: then other parts may decide what is valid.
pub(super) fn is_in_union<'s>(
    reader: &SchemaReader<'s>,
    root: &AllowedValues<'s>,
    pointer: &str,
) -> bool {
    let above = pointer.match_indices('/').map(|(at, _)| at);
    above.filter_map(|at| pointer.get(..at)).any(|above| {
        let allowed = allowed_at(reader, root, above);
        allowed.alternatives.len() > 1
    })
}

pub(super) fn pointers_of(problems: &[ReplyDiagnostic]) -> Vec<&str> {
    let mut seen = HashSet::new();
    problems
        .iter()
        .map(|problem| problem.pointer.as_str())
        .filter(|pointer| !pointer.is_empty() && seen.insert(*pointer))
        .collect()
}

pub(super) fn by_key(pointers: Vec<&str>) -> HashMap<String, Vec<&str>> {
    let mut found: HashMap<String, Vec<&str>> = HashMap::new();
    for pointer in pointers {
        found.entry(key_of(pointer)).or_default().push(pointer);
    }
    found
}

pub(super) fn spread(pointer: &str, value: &Value, into: &mut Vec<(String, Slot)>) {
    match value {
        Value::Object(members) => {
            for (key, member) in members {
                spread(&format!("{pointer}/{}", escape(key)), member, into);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                spread(&format!("{pointer}/{index}"), item, into);
            }
        }
        Value::String(text) if is_placeholder(text) => {
            into.push((pointer.to_owned(), Slot::Placeholder(text.clone())));
        }
        Value::String(text) => into.push((pointer.to_owned(), Slot::Kept(text.clone()))),
        only => into.push((pointer.to_owned(), Slot::Kept(only.to_string()))),
    }
}
