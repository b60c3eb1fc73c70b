//! The values of a call's arguments, as far as a rule looks at them.

use std::borrow::Cow;
use std::cell::OnceCell;

use plaincall_call::Arguments;
use serde_json::Value;

use super::json::taken_apart;
use super::meaning::{Meaning, Meanings};
use super::pattern::Pattern;
use super::spelling::{Fit, fit};
use super::{command_line, path};

/// The arguments of one call. They are put together when the first rule asks for one of them.
pub(super) struct Values<'a> {
    arguments: &'a Arguments,
    meanings: &'a Meanings,
    whole: OnceCell<Value>,
}

enum Place<'v> {
    /// A text that is a value, and may be the text of a number.
    Value(Cow<'v, str>),
    /// A key. What a tool makes of its keys nobody knows, so a pattern for values may be meant for them.
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

    /// How surely what stands at the pointer fits the pattern; `None` if nothing stands there.
    ///
    /// Of a list or object all parts must fit for it to fit surely, and one is enough for it to fit perhaps.
    pub(super) fn fit(&self, pointer: &str, pattern: &Pattern) -> Option<Fit> {
        let whole = self.whole.get_or_init(|| self.arguments.to_value());
        let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
        let mut segments = pointer.split('/').map(unescape);
        match find(whole, &mut segments) {
            Found::Value(Value::String(text)) if self.meanings.get(pointer).is_some() => {
                match self.meanings.get(pointer)? {
                    Meaning::CommandLine => Some(command_line::fit(pattern, text)),
                    Meaning::PathBelow(root) => Some(path::fit(pattern, text, root)),
                }
            }
            Found::Value(value) => Some(self.fit_all(value, pointer, pattern)),
            Found::Text(text) => match taken_apart(text) {
                // Only some tools take a text apart, so nothing about its parts is sure.
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
        // Of a single value the text as written counts too: `1e2` and `0100` are 100.
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
            // One text means one value, and a rule that names it is sure of it.
            Some(text) if !pattern.has_wildcard() && pattern.as_str() == text => return Fit::Yes,
            Some(text) => meet(fit(pattern, text), true),
            None => {}
        }
        each(value, &mut |place| match place {
            Place::Value(text) => meet(fit(pattern, &text), true),
            Place::Key(key) => meet(fit(pattern, key), false),
        });
        if let Value::String(text) = value
            && let Some(inner) = taken_apart(text)
        {
            each(&inner, &mut |place| match place {
                Place::Value(text) => meet(fit(pattern, &text), true),
                Place::Key(key) => meet(fit(pattern, key), false),
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
    /// A text is in the way; segments are left.
    Text(&'v str),
    /// What is in the way cannot have such a part.
    OtherShape,
    Nothing,
}

/// Follows the segments. One that was met by a text is not taken.
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

/// Shows all values of a tree, and all keys in it; a list or object without parts is a value too.
fn each<'v>(value: &'v Value, show: &mut impl FnMut(Place<'v>)) {
    let owned = |text: String| Place::Value(Cow::Owned(text));
    match value {
        Value::String(text) => show(Place::Value(Cow::Borrowed(text))),
        Value::Number(number) => {
            show(owned(number.to_string()));
            if let Some(float) = number.as_f64().filter(|_| number.is_f64()) {
                // 5.0 and 1e2 are written without a point here.
                show(owned(float.to_string()));
            }
        }
        Value::Null | Value::Bool(_) => show(owned(value.to_string())),
        Value::Array(items) if items.is_empty() => show(owned("[]".to_owned())),
        Value::Array(items) => items.iter().for_each(|item| each(item, show)),
        Value::Object(members) if members.is_empty() => show(owned("{}".to_owned())),
        Value::Object(members) => {
            for (key, member) in members {
                show(Place::Key(key));
                each(member, show);
            }
        }
    }
}

/// `~1` is `/`, then `~0` is `~`.
fn unescape(segment: &str) -> String {
    segment.replace("~1", "/").replace("~0", "~")
}
