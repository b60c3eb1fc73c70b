//! A file: its tree and its problems.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::deserialize::{self, unknown};
use crate::error::{FileDiagnostic, FileError};
use crate::node::{Node, child};
use crate::parse::{self, SyntaxErrors};

/// A parsed file and the problems found so far.
#[derive(Clone, Debug)]
pub struct Document {
    file: Arc<str>,
    text: String,
    root: Node,
    is_well_formed: bool,
    problems: Vec<(Range<usize>, String, String)>,
    /// Pointers to invalid values.
    wrong: BTreeSet<String>,
}

/// The location of a problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Location {
    /// The key at a JSON Pointer, or the nearest existing key above it.
    Key(String),
    /// The value at a JSON Pointer, or the nearest existing value above it, or its key if that is a table.
    Value(String),
    /// A part of the value at a JSON Pointer: a substring, and the number of earlier occurrences to skip.
    Within(String, String, usize),
}

impl Location {
    /// Creates the location of a key.
    pub fn key(pointer: impl Into<String>) -> Self {
        Self::Key(pointer.into())
    }

    /// Creates the location of a value.
    pub fn value(pointer: impl Into<String>) -> Self {
        Self::Value(pointer.into())
    }

    /// Returns the pointer.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Key(pointer) | Self::Value(pointer) | Self::Within(pointer, ..) => pointer,
        }
    }
}

impl Document {
    /// Parses a TOML file. If it is invalid, the document is empty and [`finish`](Self::finish) returns the errors.
    pub fn toml(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::new(file.into(), text.into(), parse::toml)
    }

    /// Parses a JSON file, with comments, trailing commas and the other extensions of JSON5.
    pub fn json(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::new(file.into(), text.into(), parse::json)
    }

    /// Parses JSON if the text begins with an object or a JSON comment, else TOML.
    pub fn json_or_toml(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let text = text.into();
        let begin = text.trim_start_matches('\u{feff}').trim_start();
        if begin.starts_with(['{', '/']) {
            Self::json(file, text)
        } else {
            Self::toml(file, text)
        }
    }

    /// Creates a document of a merged tree. Its problems have no location in a text.
    pub fn of(root: Node) -> Self {
        let text = |_: &Arc<str>, _: &str| (root, SyntaxErrors::default());
        Self::new("".into(), String::new(), text)
    }

    fn new(
        file: Arc<str>,
        text: String,
        parse: impl FnOnce(&Arc<str>, &str) -> (Node, SyntaxErrors),
    ) -> Self {
        let (root, errors) = parse(&file, &text);
        let problem = |(span, message)| (span, String::new(), message);
        Self {
            is_well_formed: errors.is_empty(),
            problems: errors.into_iter().map(problem).collect(),
            file,
            text,
            root,
            wrong: BTreeSet::new(),
        }
    }

    /// Returns the tree, which is empty after a syntax error.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Returns whether the syntax is valid.
    pub fn is_well_formed(&self) -> bool {
        self.is_well_formed
    }

    /// Returns the keys of the table at a pointer, in file order.
    pub fn keys(&self, pointer: &str) -> Vec<String> {
        let table = self.root.get(pointer).and_then(Node::table);
        table.map_or_else(Vec::new, |entries| entries.keys().cloned().collect())
    }

    /// Reports unknown keys of the table at a pointer.
    pub fn deny_unknown_keys(&mut self, pointer: &str, known: &[&str]) {
        for key in self.keys(pointer) {
            if !known.contains(&key.as_str()) {
                let place = Location::Key(child(pointer, &key));
                self.problem(&place, unknown(&key, known));
            }
        }
    }

    /// Reports these keys, separated by spaces, of the table at a pointer.
    pub(crate) fn deny_keys(
        &mut self,
        pointer: &str,
        denied: &str,
        message: impl Fn(&str) -> String,
    ) {
        for key in self.keys(pointer) {
            if denied.split(' ').any(|it| it == key) {
                self.problem(&Location::Key(child(pointer, &key)), message(&key));
            }
        }
    }

    /// Deserializes the value at a pointer. Invalid parts are reported and skipped. Returns `None` if there is no value, or if
    /// it is invalid without the skipped parts.
    pub fn read<T: DeserializeOwned>(&mut self, pointer: &str) -> Option<T> {
        if self.wrong.contains(pointer) {
            return None;
        }
        let node = self.root.get(pointer)?;
        let (value, errors) = deserialize::read(node, pointer, &mut self.wrong);
        for (place, message) in errors {
            self.problem(&place, message);
        }
        value
    }

    /// Removes an entry from the table at a pointer.
    pub fn remove(&mut self, pointer: &str, key: &str) {
        self.root.remove(pointer, key);
    }

    /// Renames a key of the table at a pointer. Reports a problem if the new name exists already.
    pub fn rename(&mut self, pointer: &str, from: &str, to: &str) {
        let Some(entries) = self.root.table_mut(pointer) else {
            return;
        };
        if !entries.contains_key(from) {
        } else if entries.contains_key(to) {
            let place = Location::Key(child(pointer, from));
            self.problem(
                &place,
                format!("`{to}` is already set and means the same; remove one"),
            );
        } else if let Some(node) = entries.shift_remove(from) {
            entries.insert(to.to_owned(), node);
        }
    }

    /// Returns whether the value at a pointer, or a part of it, is invalid.
    pub fn is_wrong(&self, pointer: &str) -> bool {
        deserialize::is_wrong(&self.wrong, pointer)
    }

    /// Returns the number of problems.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Reports a problem. Its value is skipped from then on.
    pub fn problem(&mut self, place: &Location, message: impl Into<String>) {
        let pointer = place.pointer();
        let (node, is_it) = self.root.nearest(pointer);
        let span = match place {
            Location::Value(_) if is_it || node.table().is_none() => node.span.clone(),
            Location::Key(_) | Location::Value(_) => node.key.clone(),
            Location::Within(_, part, before) => {
                let text = self.text.get(node.span.clone()).unwrap_or_default();
                match text.match_indices(part.as_str()).nth(*before) {
                    Some((at, _)) if !part.is_empty() => {
                        node.span.start + at..node.span.start + at + part.len()
                    }
                    _ => node.span.clone(),
                }
            }
        };
        self.wrong.insert(pointer.to_owned());
        self.problems
            .push((span, pointer.to_owned(), message.into()));
    }

    /// Returns the value if there are no problems.
    ///
    /// # Errors
    /// Returns all problems, in the order of the text.
    pub fn finish<T>(mut self, value: T) -> Result<T, FileError> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort_by_key(|(span, ..)| span.start);
        // A single pass over the text, however many there are.
        let (mut place, mut line, mut column) = (0, 1, 1);
        let problems = self.problems.into_iter().map(|(span, pointer, message)| {
            let passed = self.text.get(place..span.start).unwrap_or_default();
            line += passed.matches('\n').count();
            column = match passed.rsplit_once('\n') {
                Some((_, last)) => 1 + last.chars().count(),
                None => column + passed.chars().count(),
            };
            place += passed.len();
            FileDiagnostic {
                line,
                column,
                span,
                pointer,
                message,
            }
        });
        Err(FileError {
            problems: problems.collect(),
            file: self.file,
            is_well_formed: self.is_well_formed,
        })
    }
}
