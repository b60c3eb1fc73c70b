//! A tree of values with their origins.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use plaincall_names::pointers::{escape, unescape};
use serde::de::DeserializeOwned;

use crate::deserialize;

/// The maximum number of characters of a string in a message.
const SHOWN: usize = 40;

/// A value and its origin.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Node {
    /// The value.
    pub value: Value,
    /// The byte range of the value in its file.
    pub span: Range<usize>,
    /// The byte range of its key; the same as `span` for an array element.
    pub key: Range<usize>,
    /// Where it was set.
    pub origin: Origin,
}

/// A value of a file.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// JSON's null.
    Null,
    /// True or false.
    Boolean(bool),
    /// A number, in decimal digits.
    Number(String),
    /// A string.
    Text(String),
    /// A date or time of TOML.
    DateTime(String),
    /// An array.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(IndexMap<String, Node>),
}

/// Where a value was set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File {
        /// The name of the file.
        file: Arc<str>,
        /// The line of the key, from 1.
        line: usize,
    },
    /// An environment variable.
    Variable(Arc<str>),
    /// An option of the command line.
    Option(Arc<str>),
    /// Nowhere: it is the default.
    #[default]
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line } => write!(formatter, "{file}, line {line}"),
            Self::Variable(name) => write!(formatter, "the environment variable {name}"),
            Self::Option(name) => write!(formatter, "the option {name}"),
            Self::Default => formatter.write_str("the default"),
        }
    }
}

/// Appends a key or an index to a pointer.
pub fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", escape(key))
}

/// Formats a pointer as a dotted TOML key: `models.a.url`, `rules[0].tools`.
pub fn dotted(pointer: &str) -> String {
    let mut text = String::new();
    for segment in pointer.split('/').skip(1) {
        let key = unescape(segment);
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        let point = if text.is_empty() { "" } else { "." };
        // Writing to a string does not fail.
        let _ = match segment.parse::<usize>() {
            Ok(index) if text == "rules" => write!(text, "[{index}]"),
            _ if key.is_empty() || !key.chars().all(is_plain) => write!(text, "{point}{key:?}"),
            _ => write!(text, "{point}{key}"),
        };
    }
    text
}

/// The last key or index of a pointer.
pub(crate) fn last_key(pointer: &str) -> String {
    unescape(pointer.rsplit('/').next().unwrap_or_default()).into_owned()
}

impl Value {
    /// Returns the string; `None` for any other value.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(text) => Some(text),
            _ => None,
        }
    }
}

impl Default for Node {
    /// An empty table.
    fn default() -> Self {
        Self::new(serde_json::json!({}), Origin::Default)
    }
}

impl Node {
    /// Creates a value that is not from a file, such as one of an option or a variable.
    pub fn new(value: serde_json::Value, origin: Origin) -> Self {
        use serde_json::Value as Json;
        let node = |value| Self::new(value, origin.clone());
        let value = match value {
            Json::Null => Value::Null,
            Json::Bool(value) => Value::Boolean(value),
            Json::Number(number) => Value::Number(number.to_string()),
            Json::String(text) => Value::Text(text),
            Json::Array(items) => Value::List(items.into_iter().map(node).collect()),
            Json::Object(entries) => {
                let entries = entries.into_iter();
                Value::Table(entries.map(|(key, value)| (key, node(value))).collect())
            }
        };
        Self {
            value,
            span: 0..0,
            key: 0..0,
            origin,
        }
    }

    /// Returns the entries of a table; `None` for any other value.
    pub fn table(&self) -> Option<&IndexMap<String, Self>> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value at a pointer.
    pub fn get(&self, pointer: &str) -> Option<&Self> {
        match self.nearest(pointer) {
            (node, true) => Some(node),
            _ => None,
        }
    }

    /// Returns the entries of the table at a pointer through tables only.
    pub(crate) fn table_mut(&mut self, pointer: &str) -> Option<&mut IndexMap<String, Self>> {
        let mut node = self;
        for segment in pointer.split('/').skip(1) {
            let Value::Table(entries) = &mut node.value else {
                return None;
            };
            node = entries.get_mut(&*unescape(segment))?;
        }
        match &mut node.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// Returns the value at a pointer, or its nearest existing ancestor; and whether it is the value itself.
    pub(crate) fn nearest(&self, pointer: &str) -> (&Self, bool) {
        let mut node = self;
        for segment in pointer.split('/').skip(1) {
            let below = match &node.value {
                Value::Table(entries) => entries.get(&*unescape(segment)),
                Value::List(items) => segment.parse::<usize>().ok().and_then(|at| items.get(at)),
                _ => None,
            };
            let Some(below) = below else {
                return (node, false);
            };
            node = below;
        }
        (node, true)
    }

    /// Sets a value and creates missing tables.
    pub fn set(&mut self, pointer: &str, node: Self) {
        let Some((first, rest)) = pointer.strip_prefix('/').map(|rest| match rest.find('/') {
            Some(end) => rest.split_at(end),
            None => (rest, ""),
        }) else {
            *self = node;
            return;
        };
        if self.table().is_none() {
            self.value = Value::Table(IndexMap::new());
        }
        if let Value::Table(entries) = &mut self.value {
            let empty = || Self::new(serde_json::json!({}), node.origin.clone());
            let entry = entries.entry(unescape(first).into_owned());
            entry.or_insert_with(empty).set(rest, node);
        }
    }

    /// Removes an entry from the table at a pointer.
    pub fn remove(&mut self, pointer: &str, key: &str) -> Option<Self> {
        self.table_mut(pointer)?.shift_remove(key)
    }

    /// Merges another tree into this one: tables are merged, all other values are replaced.
    pub fn overlay(&mut self, upper: Self) {
        match (&mut self.value, upper.value) {
            (Value::Table(entries), Value::Table(above)) => {
                for (key, node) in above {
                    match entries.get_mut(&key) {
                        Some(below) => below.overlay(node),
                        None => drop(entries.insert(key, node)),
                    }
                }
            }
            (_, value) => *self = Self { value, ..upper },
        }
    }

    /// Deserializes a tree that is not a document, such as merged layers.
    ///
    /// # Errors
    /// Returns all problems, each with the pointer to its value.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Vec<(String, String)>> {
        let (value, faults) = deserialize::read(self, "", &mut BTreeSet::new());
        let faults = faults.into_iter();
        let problems: Vec<_> = faults
            .map(|(place, message)| (place.pointer().to_owned(), message))
            .collect();
        value.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// Returns the kind of the value for a message. The value is not in it: it may be a secret, such as that of a header.
    pub fn kind(&self) -> &'static str {
        match &self.value {
            Value::Null => "null",
            Value::Boolean(true) => "true",
            Value::Boolean(false) => "false",
            Value::Number(_) => "a number",
            Value::Text(_) => "a string",
            Value::DateTime(_) => "a date or time",
            Value::List(items) if items.is_empty() => "an empty array",
            Value::List(_) => "an array",
            Value::Table(_) => "a table",
        }
    }

    /// Returns the kind of the value with the value, if it is short, for a message about what it contains.
    pub fn kind_and_value(&self) -> String {
        match &self.value {
            Value::Number(value) => format!("the number {value}"),
            Value::Text(text) => match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("the string `{}…`", text.get(..end).unwrap_or_default()),
                None => format!("the string `{text}`"),
            },
            Value::DateTime(moment) => format!("the date or time {moment}"),
            _ => self.kind().to_owned(),
        }
    }
}
