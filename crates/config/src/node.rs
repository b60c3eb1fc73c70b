//! A tree of values that know where they come from.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::ops::Range;
use std::sync::Arc;

use indexmap::IndexMap;
use serde::de::DeserializeOwned;

use crate::deserialize;

/// How many characters of a text a message shows.
const SHOWN: usize = 40;

/// A value and where it comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The value.
    pub value: Value,
    /// Where the value is in its file, in bytes.
    pub span: Range<usize>,
    /// Where its key is; the same as `span` for an element of a list.
    pub key: Range<usize>,
    /// What set it.
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
    /// A text.
    Text(String),
    /// A date or time of TOML.
    Moment(String),
    /// A list.
    List(Vec<Node>),
    /// A table, in the order of the file.
    Table(IndexMap<String, Node>),
}

/// What set a value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// A line of a file.
    File {
        /// The name of the file.
        file: Arc<str>,
        /// The line of the key, from 1.
        line: usize,
    },
    /// A variable of the environment.
    Variable(Arc<str>),
    /// An option of the command line.
    Option(Arc<str>),
    /// Nothing: it is the default.
    #[default]
    Default,
}

impl fmt::Display for Origin {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { file, line } => write!(formatter, "{file}, line {line}"),
            Self::Variable(name) => write!(formatter, "the variable {name}"),
            Self::Option(name) => write!(formatter, "the option {name}"),
            Self::Default => formatter.write_str("the default"),
        }
    }
}

/// The pointer of a key or an index below another.
pub fn child(pointer: &str, key: &str) -> String {
    format!("{pointer}/{}", key.replace('~', "~0").replace('/', "~1"))
}

/// A pointer as the key is written in TOML, for people: `models.a.url`, `rules[0].tools`.
pub fn dotted(pointer: &str) -> String {
    let mut text = String::new();
    for segment in pointer.split('/').skip(1) {
        let key = unescaped(segment);
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

fn unescaped(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}

/// The last key or index of a pointer.
pub(crate) fn last_key(pointer: &str) -> String {
    unescaped(pointer.rsplit('/').next().unwrap_or_default())
}

impl Value {
    /// The text that it is.
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
    /// A value that no file has, such as one of an option or a variable.
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

    /// The entries of a table; `None` for any other value.
    pub fn table(&self) -> Option<&IndexMap<String, Self>> {
        match &self.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value at a pointer.
    pub fn get(&self, pointer: &str) -> Option<&Self> {
        match self.nearest(pointer) {
            (node, true) => Some(node),
            _ => None,
        }
    }

    /// The entries of the table at a pointer that leads through tables alone.
    pub(crate) fn table_mut(&mut self, pointer: &str) -> Option<&mut IndexMap<String, Self>> {
        let mut node = self;
        for segment in pointer.split('/').skip(1) {
            let Value::Table(entries) = &mut node.value else {
                return None;
            };
            node = entries.get_mut(&unescaped(segment))?;
        }
        match &mut node.value {
            Value::Table(entries) => Some(entries),
            _ => None,
        }
    }

    /// The value at a pointer, or the innermost there is on the way to it; whether it is the one that was asked for.
    pub(crate) fn nearest(&self, pointer: &str) -> (&Self, bool) {
        let mut node = self;
        for segment in pointer.split('/').skip(1) {
            let below = match &node.value {
                Value::Table(entries) => entries.get(&unescaped(segment)),
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

    /// Sets a value, and makes the tables on the way to it.
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
            let entry = entries.entry(unescaped(first));
            entry.or_insert_with(empty).set(rest, node);
        }
    }

    /// Takes an entry out of the table at a pointer.
    pub fn remove(&mut self, pointer: &str, key: &str) -> Option<Self> {
        self.table_mut(pointer)?.shift_remove(key)
    }

    /// Puts another tree over this one: its tables add to those here, all else takes the place of what was here.
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

    /// Reads a tree that is no document's, such as one that was put together of layers.
    ///
    /// # Errors
    /// All problems, each with the pointer to what it is about.
    pub fn read<T: DeserializeOwned>(&self) -> Result<T, Vec<(String, String)>> {
        let (value, faults) = deserialize::read(self, "", &mut BTreeSet::new());
        let faults = faults.into_iter();
        let problems: Vec<_> = faults
            .map(|(place, message)| (place.pointer().to_owned(), message))
            .collect();
        value.filter(|_| problems.is_empty()).ok_or(problems)
    }

    /// What the value is, in words for a message.
    pub fn kind(&self) -> String {
        match &self.value {
            Value::Null => "null".to_owned(),
            Value::Boolean(value) => value.to_string(),
            Value::Number(number) => format!("the number {number}"),
            Value::Text(text) => match text.char_indices().nth(SHOWN) {
                Some((end, _)) => format!("the text `{}…`", text.get(..end).unwrap_or_default()),
                None => format!("the text `{text}`"),
            },
            Value::Moment(moment) => format!("the time {moment}"),
            Value::List(items) if items.is_empty() => "an empty list".to_owned(),
            Value::List(_) => "a list".to_owned(),
            Value::Table(_) => "a table".to_owned(),
        }
    }
}
