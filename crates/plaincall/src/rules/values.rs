//! The argument values of a call, for rules.

use std::borrow::Cow;
use std::cell::OnceCell;

use plaincall_names::pointers::unescape;
use plaincall_tool::Arguments;
use serde_json::Value;

use super::json::parse_container;
use super::meaning::{Meaning, Meanings};
use super::pattern::Pattern;
use super::spelling::{Fit, fit};
use super::{command_line, path};

/// The arguments of a call, converted to one JSON value when the first rule needs it.
pub(super) struct Values<'a> {
    arguments: &'a Arguments,
    meanings: &'a Meanings,
    whole: OnceCell<Value>,
}

enum Part<'v> {
    /// A value as text.
    Value(Cow<'v, str>),
    /// A key. Tools may use keys as values, so a pattern may match them too.
    Key(&'v str),
}

impl<'a> Values<'a> {
    pub(super) fn new(arguments: &'a Arguments, meanings: &'a Meanings) -> Self {
        Self {
            arguments,
            meanings,
            whole: OnceCell::new(),
        }
    }

    /// Matches the value at a JSON Pointer against a pattern; `None` if there is no value.
    ///
    /// A list or object matches certainly if all its parts do, and possibly if one part does.
    pub(super) fn fit(&self, pointer: &str, pattern: &Pattern) -> Option<Fit> {
        let whole = self.whole.get_or_init(|| self.arguments.to_value());
        let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
        let mut segments = pointer
            .split('/')
            .map(|segment| unescape(segment).into_owned());
        match find(whole, &mut segments) {
            Found::Value(Value::String(text)) if self.meanings.get(pointer).is_some() => {
                match self.meanings.get(pointer)? {
                    Meaning::CommandLine => Some(command_line::fit(pattern, text)),
                    Meaning::PathBelow(root) => Some(path::fit(pattern, text, root)),
                }
            }
            Found::Value(value) => Some(self.fit_all(value, pointer, pattern)),
            Found::Text(text) => match parse_container(text) {
                // Only some tools parse JSON in a text, so its parts match at most possibly.
                Some(inner) => match find(&inner, &mut segments) {
                    Found::Value(value) => {
                        let fit = self.fit_all(value, pointer, pattern);
                        Some(fit.min(Fit::Perhaps))
                    }
                    Found::Nothing => None,
                    Found::Text(_) | Found::OtherShape => Some(Fit::Perhaps),
                },
                None => Some(Fit::Perhaps),
            },
            Found::OtherShape => Some(Fit::Perhaps),
            Found::Nothing => None,
        }
    }

    fn fit_all(&self, value: &Value, pointer: &str, pattern: &Pattern) -> Fit {
        // A scalar is compared as written too: `1e2` and `0100` are 100.
        let written = match value {
            Value::Array(_) | Value::Object(_) => None,
            _ => self.arguments.get(pointer),
        };
        let mut all = Fit::Yes;
        let mut any = Fit::No;
        let mut meet = |found: Fit, is_needed: bool| {
            any = any.max(found);
            if is_needed {
                all = all.min(found);
            }
        };
        match written {
            // An equal text is a certain match.
            Some(text) if !pattern.has_wildcard() && pattern.as_str() == text => return Fit::Yes,
            Some(text) => meet(fit(pattern, text), true),
            None => {}
        }
        each(value, &mut |part| match part {
            Part::Value(text) => meet(fit(pattern, &text), true),
            Part::Key(key) => meet(fit(pattern, key), false),
        });
        if let Value::String(text) = value
            && let Some(inner) = parse_container(text)
        {
            each(&inner, &mut |part| match part {
                Part::Value(text) => meet(fit(pattern, &text), true),
                Part::Key(key) => meet(fit(pattern, key), false),
            });
        }
        match (all, any) {
            (Fit::Yes, _) => Fit::Yes,
            (_, Fit::No) => Fit::No,
            _ => Fit::Perhaps,
        }
    }
}

enum Found<'v> {
    Value(&'v Value),
    /// A text, with segments of the pointer left.
    Text(&'v str),
    /// A value that cannot have such a part.
    OtherShape,
    Nothing,
}

/// Follows the segments, and consumes those that were found.
fn find<'v>(
    mut value: &'v Value,
    segments: &mut (impl Iterator<Item = String> + Clone),
) -> Found<'v> {
    loop {
        let mut ahead = segments.clone();
        let Some(segment) = ahead.next() else {
            return Found::Value(value);
        };
        let member = match value {
            Value::Object(members) => members.get(&segment),
            Value::Array(items) => match segment.parse::<usize>() {
                Ok(index) => items.get(index),
                Err(_) => return Found::OtherShape,
            },
            Value::String(text) => return Found::Text(text),
            Value::Null | Value::Bool(_) | Value::Number(_) => return Found::OtherShape,
        };
        let Some(member) = member else {
            return Found::Nothing;
        };
        *segments = ahead;
        value = member;
    }
}

/// Calls `show` with all keys and values of a tree. An empty list or object is a value.
fn each<'v>(value: &'v Value, show: &mut impl FnMut(Part<'v>)) {
    let owned = |text: String| Part::Value(Cow::Owned(text));
    match value {
        Value::String(text) => show(Part::Value(Cow::Borrowed(text))),
        Value::Number(number) => {
            show(owned(number.to_string()));
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                // The form of 5.0 and 1e2 without a decimal point.
                show(owned(float.to_string()));
            }
        }
        Value::Null | Value::Bool(_) => show(owned(value.to_string())),
        Value::Array(items) if items.is_empty() => show(owned("[]".to_owned())),
        Value::Array(items) => items.iter().for_each(|item| each(item, show)),
        Value::Object(members) if members.is_empty() => show(owned("{}".to_owned())),
        Value::Object(members) => {
            for (key, member) in members {
                show(Part::Key(key));
                each(member, show);
            }
        }
    }
}
