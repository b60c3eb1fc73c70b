//! The calls of a text in a known format.

use std::ops::Range;
use std::sync::Arc;

use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::bind::bind_arguments;
use crate::flatten::flatten_call;
use crate::json_text;
use crate::pointer::escape;
use crate::rescue::RescuedCall;
use crate::rescue::json_scan::{OTHER_KEYS, argument_keys, is_name_key};
use crate::tool::ToolSpec;
use crate::tool::lookup::ToolLookup;

/// A part of the text of calls: its range.
#[derive(Clone, Debug)]
pub(super) enum Part {
    /// The name of a tool.
    Name(Range<usize>),
    /// The name of a parameter.
    Key(Range<usize>),
    /// The text of this parameter.
    Value(Range<usize>),
    /// The JSON of the arguments of the tool named before.
    Arguments(Range<usize>),
    /// The JSON of calls.
    Calls(Range<usize>),
}

/// Returns the calls that consist of these parts of a text, if all of them are valid.
pub(super) fn calls(
    text: &str,
    parts: &[Part],
    tools: &impl ToolLookup,
) -> Option<Vec<RescuedCall>> {
    let mut calls = Vec::new();
    // The name of the current call, and its texts.
    let mut named: Option<(&str, Vec<(&str, &str)>)> = None;
    let mut key = None;
    for part in parts {
        match part {
            Part::Name(range) => {
                if let Some((name, texts)) = named.replace((text.get(range.clone())?, Vec::new())) {
                    calls.push(with_texts(name, &texts, tools)?);
                }
            }
            Part::Key(range) => key = text.get(range.clone()),
            // Another value than that of a parameter is an id.
            Part::Value(range) => {
                if let (Some(key), Some((_, texts))) = (key.take(), &mut named) {
                    texts.push((key, without_edges(text.get(range.clone())?)));
                }
            }
            Part::Arguments(range) => {
                let (name, _) = named.take()?;
                calls.push(with_object(
                    name,
                    &object(text.get(range.clone())?)?,
                    tools,
                )?);
            }
            Part::Calls(range) => {
                if let Some((name, texts)) = named.take() {
                    calls.push(with_texts(name, &texts, tools)?);
                }
                match json_text::parse(text.get(range.clone())?).ok()? {
                    Value::Array(items) => {
                        for item in items {
                            calls.push(from_object(item, tools)?);
                        }
                    }
                    other => calls.push(from_object(other, tools)?),
                }
            }
        }
    }
    if let Some((name, texts)) = named {
        calls.push(with_texts(name, &texts, tools)?);
    }
    Some(calls).filter(|calls| !calls.is_empty())
}

/// Removes one line end at each edge.
fn without_edges(text: &str) -> &str {
    let text = text
        .strip_prefix('\r')
        .filter(|rest| rest.starts_with('\n'))
        .unwrap_or(text);
    let text = text.strip_prefix('\n').unwrap_or(text);
    let Some(text) = text.strip_suffix('\n') else {
        return text;
    };
    text.strip_suffix('\r').unwrap_or(text)
}

fn object(json: &str) -> Option<Map<String, Value>> {
    match json_text::parse(json).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns the call in an object with the name of a tool and its arguments.
fn from_object(value: Value, tools: &impl ToolLookup) -> Option<RescuedCall> {
    let Value::Object(members) = value else {
        return None;
    };
    let (mut name, mut arguments) = (None, None);
    for (key, value) in members {
        let place = match &*key {
            // OpenAI's form of a call.
            "function" if value.is_object() => return from_object(value, tools),
            key if is_name_key(key) => &mut name,
            key if argument_keys().any(|known| known == key) => &mut arguments,
            key if OTHER_KEYS.contains(&key) => continue,
            _ => return None,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    let Value::String(name) = name? else {
        return None;
    };
    let arguments = match arguments? {
        Value::Object(arguments) => arguments,
        Value::String(text) => object(&text)?,
        _ => return None,
    };
    with_object(&name, &arguments, tools)
}

fn with_object(
    name: &str,
    arguments: &Map<String, Value>,
    tools: &impl ToolLookup,
) -> Option<RescuedCall> {
    let (_, tool) = tools.find(name)?;
    let texts = flatten_call(arguments, tool).ok()?;
    bound(
        tool,
        texts.iter().map(|(pointer, text)| (&**pointer, &**text)),
    )
}

fn with_texts(
    name: &str,
    arguments: &[(&str, &str)],
    tools: &impl ToolLookup,
) -> Option<RescuedCall> {
    let (_, tool) = tools.find(name)?;
    let texts: Vec<_> = arguments
        .iter()
        .map(|(key, text)| (escape(key), *text))
        .collect();
    bound(
        tool,
        texts.iter().map(|(pointer, text)| (&**pointer, *text)),
    )
}

fn bound<'t>(
    tool: &ToolSpec,
    texts: impl Iterator<Item = (&'t str, &'t str)>,
) -> Option<RescuedCall> {
    let arguments = Arguments::from_pairs_for(tool, texts).ok()?;
    let arguments = bind_arguments(tool, &arguments).ok()?;
    Some(RescuedCall {
        name: tool.name.clone(),
        arguments: Arc::new(arguments),
    })
}
