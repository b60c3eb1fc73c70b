//! A file: its tree, and the problems found in it.

use std::collections::BTreeSet;
use std::ops::Range;
use std::sync::Arc;

use serde::de::DeserializeOwned;

use crate::deserialize::{self, unknown};
use crate::error::{FileError, Problem};
use crate::node::{Node, child};
use crate::parse::{self, Faults};

/// A file that is being read.
#[derive(Clone, Debug)]
pub struct Document {
    file: Arc<str>,
    text: String,
    root: Node,
    is_well_formed: bool,
    problems: Vec<(Range<usize>, String, String)>,
    /// Pointers to values that have a problem already.
    wrong: BTreeSet<String>,
}

/// Where a problem is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The key at a JSON Pointer, or the innermost key on the way to it.
    Key(String),
    /// The value at a JSON Pointer; if there is none, the innermost value on the way to it, or its key if that is a table.
    Value(String),
    /// A part of the value at a JSON Pointer: a text that is in it, and how many of these come before the one.
    Within(String, String, usize),
}

impl Place {
    /// The key at a pointer.
    pub fn key(pointer: impl Into<String>) -> Self {
        Self::Key(pointer.into())
    }

    /// The value at a pointer.
    pub fn value(pointer: impl Into<String>) -> Self {
        Self::Value(pointer.into())
    }

    /// The pointer of the value that it is about.
    pub fn pointer(&self) -> &str {
        match self {
            Self::Key(pointer) | Self::Value(pointer) | Self::Within(pointer, ..) => pointer,
        }
    }
}

impl Document {
    /// Reads the text of a TOML file. If it is not TOML, the document is empty and [`finish`](Self::finish) says why.
    pub fn toml(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::new(file.into(), text.into(), parse::toml)
    }

    /// Reads the text of a JSON file, with comments, trailing commas and the other freedoms of JSON5.
    pub fn json(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        Self::new(file.into(), text.into(), parse::json)
    }

    /// Reads JSON if the text begins with an object or a comment of JSON, else TOML.
    pub fn json_or_toml(file: impl Into<Arc<str>>, text: impl Into<String>) -> Self {
        let text = text.into();
        let begin = text.trim_start_matches('\u{feff}').trim_start();
        if begin.starts_with(['{', '/']) {
            Self::json(file, text)
        } else {
            Self::toml(file, text)
        }
    }

    /// A tree that was put together of layers. Its problems have no place in a text.
    pub fn of(root: Node) -> Self {
        let text = |_: &Arc<str>, _: &str| (root, Faults::default());
        Self::new("".into(), String::new(), text)
    }

    fn new(
        file: Arc<str>,
        text: String,
        parse: impl FnOnce(&Arc<str>, &str) -> (Node, Faults),
    ) -> Self {
        let (root, faults) = parse(&file, &text);
        let problem = |(span, message)| (span, String::new(), message);
        Self {
            is_well_formed: faults.is_empty(),
            problems: faults.into_iter().map(problem).collect(),
            file,
            text,
            root,
            wrong: BTreeSet::new(),
        }
    }

    /// The tree. It is empty if the syntax is wrong.
    pub fn root(&self) -> &Node {
        &self.root
    }

    /// Whether the syntax is right.
    pub fn is_well_formed(&self) -> bool {
        self.is_well_formed
    }

    /// The names of the entries of the table at a pointer, in the order of the file.
    pub fn keys(&self, pointer: &str) -> Vec<String> {
        let table = self.root.get(pointer).and_then(Node::table);
        table.map_or_else(Vec::new, |entries| entries.keys().cloned().collect())
    }

    /// Reports the keys of the table at a pointer that are not known.
    pub fn refuse_other_keys(&mut self, pointer: &str, known: &[&str]) {
        for key in self.keys(pointer) {
            if !known.contains(&key.as_str()) {
                let place = Place::Key(child(pointer, &key));
                self.problem(&place, unknown(&key, known));
            }
        }
    }

    /// Reports these keys of the table at a pointer, which stand with blanks between, each with its message.
    pub(crate) fn refuse_keys(
        &mut self,
        pointer: &str,
        refused: &str,
        message: impl Fn(&str) -> String,
    ) {
        for key in self.keys(pointer) {
            if refused.split(' ').any(|it| it == key) {
                self.problem(&Place::Key(child(pointer, &key)), message(&key));
            }
        }
    }

    /// Reads the value at a pointer. Everything wrong with it is a problem of the document, and absent from the value.
    /// `None` if there is no value, if it has a problem, or if what is left of it cannot be one.
    pub fn read<T: DeserializeOwned>(&mut self, pointer: &str) -> Option<T> {
        if self.wrong.contains(pointer) {
            return None;
        }
        let node = self.root.get(pointer)?;
        let (value, faults) = deserialize::read(node, pointer, &mut self.wrong);
        for (place, message) in faults {
            self.problem(&place, message);
        }
        value
    }

    /// Takes an entry out of the table at a pointer.
    pub fn leave_out(&mut self, pointer: &str, key: &str) {
        self.root.remove(pointer, key);
    }

    /// Gives the entry of a table at a pointer another name, under which it is read; a problem if there is one of that name.
    pub fn rename(&mut self, pointer: &str, from: &str, to: &str) {
        let Some(entries) = self.root.table_mut(pointer) else {
            return;
        };
        if !entries.contains_key(from) {
        } else if entries.contains_key(to) {
            let place = Place::Key(child(pointer, from));
            self.problem(&place, format!("`{to}` is set already, and means the same"));
        } else if let Some(node) = entries.shift_remove(from) {
            entries.insert(to.to_owned(), node);
        }
    }

    /// Whether the value at a pointer, or a part of it, has a problem already.
    pub fn is_wrong(&self, pointer: &str) -> bool {
        deserialize::is_wrong(&self.wrong, pointer)
    }

    /// How many problems there are.
    pub fn count(&self) -> usize {
        self.problems.len()
    }

    /// Adds a problem that the caller found. Its value is not read any more.
    pub fn problem(&mut self, place: &Place, message: impl Into<String>) {
        let pointer = place.pointer();
        let (node, is_it) = self.root.nearest(pointer);
        let span = match place {
            Place::Value(_) if is_it || node.table().is_none() => node.span.clone(),
            Place::Key(_) | Place::Value(_) => node.key.clone(),
            Place::Within(_, part, before) => {
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

    /// The value, if there is no problem.
    ///
    /// # Errors
    /// All problems in the order of the text.
    pub fn finish<T>(mut self, value: T) -> Result<T, FileError> {
        if self.problems.is_empty() {
            return Ok(value);
        }
        self.problems.sort_by_key(|(span, ..)| span.start);
        // The text is gone through once, however many there are.
        let (mut place, mut line, mut column) = (0, 1, 1);
        let problems = self.problems.into_iter().map(|(span, pointer, message)| {
            let passed = self.text.get(place..span.start).unwrap_or_default();
            line += passed.matches('\n').count();
            column = match passed.rsplit_once('\n') {
                Some((_, last)) => 1 + last.chars().count(),
                None => column + passed.chars().count(),
            };
            place += passed.len();
            Problem {
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
