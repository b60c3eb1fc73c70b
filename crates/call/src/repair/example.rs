//! The correct example of a call (`spec/repair.md` 3).

use std::collections::{HashMap, HashSet};

use plaincall_syntax::{Call, Dialect, Escaper, Syntax, render};
use serde_json::Value;

use crate::bind::bind;
use crate::call::ToolCall;
use crate::call_error::CallError;
use crate::document::Document;
use crate::pointer::{escape, unescape};
use crate::repair::placeholder::{as_before, bytes, is_placeholder};
use crate::repair::{block_example, emoji_example};
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::schema::{AllowedValues, SchemaReader};
use crate::tool::ToolSpec;
use crate::tool::usage::UsageBody;

/// A longer value is not repeated. In bytes.
const LONGEST_VALUE: usize = 200;
/// A longer id is omitted. In bytes.
const LONGEST_ID: usize = 300;
/// A call with longer dependencies has no example: without them it would not wait. In bytes.
const LONGEST_DEPENDENCIES: usize = 1_000;

pub(super) struct Example {
    pub(super) text: String,
    pub(super) has_placeholders: bool,
    /// The number of arguments that it omits.
    pub(super) omitted: usize,
}

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

impl Example {
    /// Creates the example for a call. `None` if the dialect cannot express it, or if anything besides its placeholders
    /// would be invalid.
    pub(super) fn of(
        tool: &ToolSpec,
        call: &ToolCall,
        wrong: Wrong,
        dialect: &Dialect,
    ) -> Option<Self> {
        let own = dialect.for_syntax(call.syntax);
        let keeper = Keeper::new(dialect, &own)?;
        let header = HeaderParts::of(call, wrong)?;
        let attempt = |keep: Keep| {
            let spelled = match call.syntax {
                Syntax::Block => block_example::spelled(tool, call, wrong, keep, &keeper),
                Syntax::Emoji => emoji_example::spelled(tool, call, wrong, keep, &keeper),
            };
            let text = rendered(tool, &header, &spelled, &own, &keeper)?;
            Some((spelled, text))
        };
        let levels = [Keep::Parts, Keep::Arguments, Keep::Nothing];
        let mut attempts = levels.into_iter().filter_map(attempt);
        let (spelled, text) =
            attempts.find(|(spelled, text)| is_right_elsewhere(tool, spelled, text, &own))?;
        let example = Self::from(&spelled, text);
        // Missing arguments were never written, so without a placeholder the example would look complete.
        let is_reported =
            example.has_placeholders || !(wrong.is_truncated && may_lack_arguments(tool, call));
        is_reported.then_some(example)
    }

    pub(super) fn blank(tool: &ToolSpec, syntax: Syntax, dialect: &Dialect) -> Option<Self> {
        let own = dialect.for_syntax(syntax);
        let keeper = Keeper::new(dialect, &own)?;
        let spelled = match syntax {
            Syntax::Block => block_example::blank(tool),
            Syntax::Emoji => emoji_example::blank(tool),
        };
        let text = rendered(tool, &HeaderParts::default(), &spelled, &own, &keeper)?;
        Some(Self::from(&spelled, text))
    }

    fn from(spelled: &Spelled, text: String) -> Self {
        Self {
            text,
            has_placeholders: !spelled.placeholders.is_empty(),
            omitted: spelled.omitted,
        }
    }
}

fn may_lack_arguments(tool: &ToolSpec, call: &ToolCall) -> bool {
    match call.syntax {
        Syntax::Block => true,
        // The line is complete, and so is a body that is valid JSON.
        Syntax::Emoji => match tool.usage().body {
            UsageBody::Nothing => false,
            UsageBody::Parameter(_) => true,
            UsageBody::Json => call.body().unwrap_or_default().trim().is_empty(),
        },
    }
}

/// The id and the dependencies of the example.
#[derive(Default)]
struct HeaderParts {
    id: Option<String>,
    dependencies: Vec<String>,
}

impl HeaderParts {
    /// Returns `None` if they are too long.
    fn of(call: &ToolCall, wrong: Wrong) -> Option<Self> {
        let bytes: usize = call.dependencies.iter().map(String::len).sum();
        if bytes > LONGEST_DEPENDENCIES {
            return None;
        }
        // Dependencies require an id before them, of any length.
        let has_room = call.id.len() <= LONGEST_ID || !call.dependencies.is_empty();
        let id = (!call.is_id_automatic && has_room).then(|| {
            if wrong.has_taken_id {
                format!("{}_{}", call.id, call.index + 1)
            } else {
                call.id.clone()
            }
        });
        Some(Self {
            id,
            dependencies: call.dependencies.clone(),
        })
    }
}

/// Renders the example; `None` if the dialect cannot express it, or if a definition contains a marker.
fn rendered(
    tool: &ToolSpec,
    header: &HeaderParts,
    spelled: &Spelled,
    dialect: &Dialect,
    keeper: &Keeper,
) -> Option<String> {
    let ids = header.id.iter().chain(&header.dependencies);
    let mut lines = ids.map(String::as_str).chain([tool.name.as_str()]);
    let is_free = match &spelled.texts {
        Texts::Block(arguments) => arguments
            .iter()
            .all(|(pointer, text)| keeper.is_free(pointer) && keeper.is_safe(text)),
        Texts::Emoji { raw_args, body } => keeper.is_free(raw_args) && keeper.is_safe(body),
    };
    if !is_free || !lines.all(|line| keeper.is_free(line)) {
        return None;
    }
    let call = match &spelled.texts {
        Texts::Block(arguments) => Call::Block {
            name: &tool.name,
            id: header.id.as_deref(),
            dependencies: header.dependencies.iter().map(String::as_str).collect(),
            arguments: arguments
                .iter()
                .map(|(pointer, text)| (&**pointer, &**text))
                .collect(),
        },
        Texts::Emoji { raw_args, body } => Call::Emoji {
            name: &tool.name,
            raw_args,
            body,
        },
    };
    render(&call, dialect).ok()
}

/// Returns `true` if nothing in the example is invalid except its placeholders.
fn is_right_elsewhere(tool: &ToolSpec, spelled: &Spelled, text: &str, dialect: &Dialect) -> bool {
    let Ok(document) = Document::parse(text, dialect) else {
        return false;
    };
    let Some(call) = document.calls().next() else {
        return false;
    };
    let Err(problems) = bind(tool, call) else {
        return true;
    };
    let is_expected = |problem: &ReplyDiagnostic| {
        let mut placeholders = spelled.placeholders.iter();
        placeholders.any(|one| is_related(one, &problem.pointer))
    };
    problems.iter().all(is_expected)
}

pub(super) struct Keeper {
    all: Escaper,
    own: Option<Escaper>,
}

impl Keeper {
    fn new(dialect: &Dialect, own: &Dialect) -> Option<Self> {
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
    fn is_safe(&self, text: &str) -> bool {
        let escaped = match &self.own {
            Some(own) => own.escape(text),
            None => text.into(),
        };
        self.all.escape(text) == escaped
    }

    /// Returns `true` if a text contains no marker, for dialects without an escape.
    fn is_free(&self, text: &str) -> bool {
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
