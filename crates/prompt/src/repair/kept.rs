//! The arguments of a call that its example keeps, and the placeholders in place of the others.

use std::collections::{HashMap, HashSet};

use plaincall_syntax::{Dialect, Escaper};
use serde_json::Value;

use crate::repair::placeholder::{as_before, bytes, is_placeholder, narrowed, skeleton};
use plaincall_names::pointers::{escape, unescape};
use plaincall_reply::CallError;
use plaincall_tool::schema::{AllowedValues, SchemaReader};
use plaincall_tool::tree::ROOT;
use plaincall_tool::{Arguments, ReplyDiagnostic, ToolSpec};

/// A longer value is not repeated. In bytes.
const LONGEST_VALUE: usize = 200;
/// An argument with more values becomes one placeholder.
const MOST_VALUES: usize = 12;
/// Optional arguments over this number of values are not shown.
const MOST_SHOWN: usize = 32;
/// An argument with a longer pointer becomes one placeholder. In bytes.
const LONGEST_POINTER: usize = 100;

/// Errors besides those of binding.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Wrong {
    /// Whether the end of its last value is not known.
    pub(super) is_truncated: bool,
    pub(super) has_taken_id: bool,
}

impl Wrong {
    pub(super) fn of(error: &CallError) -> Self {
        Self {
            is_truncated: error.is_about_its_end(),
            has_taken_id: matches!(error, CallError::DuplicateId(_)),
        }
    }
}

/// The texts of an example.
pub(super) struct Spelled {
    pub(super) texts: Texts,
    /// The arguments that contain a placeholder.
    pub(super) placeholders: HashSet<String>,
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

    /// Returns a placeholder for a text that is long or contains a marker that the example could not escape.
    pub(super) fn placeholder(&self, text: &str) -> Option<String> {
        if text.len() > LONGEST_VALUE {
            return Some(as_before(&bytes(text.len())));
        }
        (!self.is_safe(text)).then(|| as_before("a string with a marker"))
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

/// An argument of the example.
pub(super) enum Part {
    /// As it was written.
    Kept,
    Placeholder(Value),
}

/// The arguments of an example.
pub(super) struct Draft<'d, 's> {
    pub(super) tool: &'d ToolSpec,
    reader: &'d SchemaReader<'s>,
    root: AllowedValues<'s>,
    pub(super) written: &'d Arguments,
    /// The pointers and texts of the written arguments.
    lines: HashMap<String, Vec<(&'d str, &'d str)>>,
    /// Arguments of which nothing is kept.
    pub(super) broken: HashSet<String>,
    pub(super) keeper: &'d Keeper,
    shown: usize,
    placeholders: HashSet<String>,
    omitted: usize,
}

impl<'d, 's> Draft<'d, 's> {
    pub(super) fn new(
        tool: &'d ToolSpec,
        reader: &'d SchemaReader<'s>,
        written: &'d Arguments,
        problems: &[ReplyDiagnostic],
        keeper: &'d Keeper,
    ) -> Self {
        let mut lines: HashMap<String, Vec<(&str, &str)>> = HashMap::new();
        for argument in written.iter() {
            let line = (argument.pointer, argument.text);
            lines.entry(key_of(line.0)).or_default().push(line);
        }
        let problems = problems.iter().filter(|one| !one.pointer.is_empty());
        Self {
            tool,
            reader,
            root: reader.narrow(reader.root(), written, ROOT),
            written,
            lines,
            broken: problems.map(|one| key_of(&one.pointer)).collect(),
            keeper,
            shown: 0,
            placeholders: HashSet::new(),
            omitted: 0,
        }
    }

    pub(super) fn allowed(&self, key: &str) -> AllowedValues<'s> {
        self.reader.member(&self.root, key)
    }

    pub(super) fn lines(&self, key: &str) -> Vec<(&'d str, &'d str)> {
        self.lines.get(key).cloned().unwrap_or_default()
    }

    /// Returns the arguments to show in the order of the definition, up to the limit.
    pub(super) fn parts(&mut self) -> Vec<(String, Part)> {
        let declared = self.tool.parameters().iter().map(|one| one.name.as_str());
        let others = self.written.tree.root().map(|(key, _)| key);
        let others = others.filter(|key| self.tool.get(key).is_none() && self.root.declares(key));
        let keys: Vec<String> = declared.chain(others).map(str::to_owned).collect();
        let parts = keys.into_iter();
        parts
            .filter_map(|key| self.part(&key).map(|part| (key, part)))
            .collect()
    }

    /// Returns one argument; `None` if it is not shown.
    pub(super) fn part(&mut self, key: &str) -> Option<Part> {
        let lines = self.lines.get(key).map_or(&[][..], Vec::as_slice);
        let is_required = self.tool.get(key).is_some_and(|one| one.required);
        let is_broken = self.broken.contains(key);
        if lines.is_empty() && !is_required && !is_broken {
            return None;
        }
        if self.shown >= MOST_SHOWN && !is_required {
            self.omitted += lines.len();
            return None;
        }
        self.shown += lines.len().clamp(1, MOST_VALUES);
        if is_broken || lines.is_empty() {
            let value = self.written.get(&escape(key)).unwrap_or_default();
            let value = plaincall_tool::json::parse(value).unwrap_or_else(|_| self.value(key));
            let allowed = narrowed(self.reader, &self.allowed(key), &value);
            return Some(Part::Placeholder(skeleton(self.reader, &allowed)));
        }
        let has_long_pointer = || lines.iter().any(|line| line.0.len() > LONGEST_POINTER);
        if lines.len() > MOST_VALUES || has_long_pointer() {
            let count = as_before(&format!("{} values", lines.len()));
            return Some(Part::Placeholder(count.into()));
        }
        Some(Part::Kept)
    }

    /// Returns the value under a key, as far as it can be read without its schema.
    pub(super) fn value(&self, key: &str) -> Value {
        let mut all = self.written.tree.root();
        let node = all.find(|(name, _)| *name == key).map(|(_, node)| node);
        node.map_or(Value::Null, |node| self.written.value_of(node))
    }

    /// Returns a text, or its placeholder.
    pub(super) fn kept(&mut self, key: &str, text: &str) -> String {
        match self.keeper.placeholder(text) {
            Some(placeholder) => self.replaced(key, placeholder),
            None => text.to_owned(),
        }
    }

    /// Notes that an argument has a placeholder.
    pub(super) fn replaced(&mut self, key: &str, text: String) -> String {
        self.placeholders.insert(key.to_owned());
        text
    }

    /// Notes the placeholders in an expected value, and visits its parts.
    pub(super) fn spread(
        &mut self,
        pointer: &str,
        value: &Value,
        visit: &mut dyn FnMut(&str, String),
    ) {
        match value {
            Value::Object(members) => {
                for (name, member) in members {
                    self.spread(&format!("{pointer}/{}", escape(name)), member, visit);
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter().enumerate() {
                    self.spread(&format!("{pointer}/{index}"), item, visit);
                }
            }
            Value::String(text) if is_placeholder(text) => {
                visit(pointer, self.replaced(&key_of(pointer), text.clone()));
            }
            Value::String(text) => visit(pointer, text.clone()),
            only => visit(pointer, only.to_string()),
        }
    }

    pub(super) fn finish(self, texts: Texts) -> Spelled {
        Spelled {
            texts,
            placeholders: self.placeholders,
            omitted: self.omitted,
        }
    }
}

pub(super) fn key_of(pointer: &str) -> String {
    unescape(pointer.split('/').next().unwrap_or_default()).into_owned()
}
