//! The calls of a text in a known format.

use std::ops::Range;
use std::sync::Arc;

use plaincall_syntax::{CALL_ARGUMENT_KEYS, CALL_NAME_KEYS};
use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::bind::ReplySteps;
use crate::flatten::flatten_call;
use crate::json_text;
use crate::pointer::escape;
use crate::rescue::RescuedCall;
use crate::rescue::formats::Step;
use crate::tool::ToolSpec;
use crate::tool::lookup::ToolLookup;

/// A member of a call in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The name of the tool.
    Name,
    Arguments,
    /// A member that is ignored.
    Other,
}

impl Member {
    /// Returns the member with this key.
    pub(crate) fn of(key: &str) -> Option<Self> {
        let mut members = call_members();
        let (member, _) = members.find(|(_, known)| *known == key)?;
        Some(member)
    }
}

/// Returns the members of a call in JSON, with their keys. `input` is too common a word: it would make most texts with JSON look
/// like calls.
pub(crate) fn call_members() -> impl Iterator<Item = (Member, &'static str)> {
    let names = CALL_NAME_KEYS.iter().map(|key| (Member::Name, *key));
    let arguments = CALL_ARGUMENT_KEYS.iter().filter(|key| **key != "input");
    let arguments = arguments.map(|key| (Member::Arguments, *key));
    let others = ["id", "type"].map(|key| (Member::Other, key));
    names.chain(arguments).chain(others)
}

/// The tool of a call, and its arguments as pointers and texts.
type Written<'t> = (&'t ToolSpec, Vec<(String, String)>);

/// Returns the calls that consist of these parts of a text, if all of them are valid.
pub(super) fn calls(
    text: &str,
    parts: &[(Step, Range<usize>)],
    tools: &impl ToolLookup,
    steps: &mut ReplySteps,
) -> Option<Vec<RescuedCall>> {
    let mut calls: Vec<Written<'_>> = Vec::new();
    let mut key = None;
    for (step, range) in parts {
        let text = text.get(range.clone())?;
        match step {
            Step::Name => calls.push((tools.find(text)?.1, Vec::new())),
            Step::Key => key = Some(escape(text).into_owned()),
            Step::Arguments => {
                let (tool, pairs) = calls.last_mut()?;
                *pairs = flatten_call(&object(text)?, tool).ok()?;
            }
            Step::Calls => {
                let items = match json_text::parse(text).ok()? {
                    Value::Array(items) => items,
                    item => vec![item],
                };
                for item in items {
                    calls.push(from_json(item, tools)?);
                }
            }
            // The value quotes a call, or its end.
            _ if key.is_some() && OWN_TAGS.iter().any(|tag| text.contains(tag)) => return None,
            // A value without a key is an id.
            _ => {
                let (_, pairs) = calls.last_mut()?;
                pairs.extend(key.take().map(|key| (key, without_edges(text).to_owned())));
            }
        }
    }
    let calls = calls.iter().map(|written| bound(written, steps));
    let calls: Option<Vec<_>> = calls.collect();
    calls.filter(|calls| !calls.is_empty())
}

/// The tags of a function in a text, which a value of a parameter does not contain.
const OWN_TAGS: [&str; 4] = ["<function=", "</function>", "<parameter=", "</parameter>"];

/// Removes one line end at each edge.
fn without_edges(text: &str) -> &str {
    let begun = text.strip_prefix("\r\n").or(text.strip_prefix('\n'));
    let text = begun.unwrap_or(text);
    let ended = text.strip_suffix("\r\n").or(text.strip_suffix('\n'));
    ended.unwrap_or(text)
}

fn object(json: &str) -> Option<Map<String, Value>> {
    match json_text::parse(json).ok()? {
        Value::Object(object) => Some(object),
        _ => None,
    }
}

/// Returns the call in an object with the name of a tool and its arguments.
fn from_json(value: Value, tools: &impl ToolLookup) -> Option<Written<'_>> {
    let Value::Object(members) = value else {
        return None;
    };
    let (mut name, mut arguments, mut function) = (None, None, None);
    for (key, value) in members {
        let place = match Member::of(&key)? {
            // OpenAI's form of a call.
            Member::Name if key == "function" && value.is_object() => {
                function = Some(value);
                continue;
            }
            Member::Name => &mut name,
            Member::Arguments => &mut arguments,
            Member::Other => continue,
        };
        if place.replace(value).is_some() {
            return None;
        }
    }
    if let Some(function) = function {
        // Beside it, nothing may name another tool or other arguments.
        return (name.is_none() && arguments.is_none()).then(|| from_json(function, tools))?;
    }
    let (_, tool) = tools.find(name?.as_str()?)?;
    let arguments = match arguments {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(arguments)) => arguments,
        Some(Value::String(text)) => object(&text)?,
        Some(_) => return None,
    };
    Some((tool, flatten_call(&arguments, tool).ok()?))
}

fn bound((tool, pairs): &Written<'_>, steps: &mut ReplySteps) -> Option<RescuedCall> {
    let pairs = pairs.iter();
    let pairs = pairs.map(|(pointer, text)| (&**pointer, &**text));
    let arguments = Arguments::from_pairs_for(tool, pairs).ok()?;
    Some(RescuedCall {
        name: tool.name.clone(),
        arguments: Arc::new(steps.bind_arguments(tool, &arguments).ok()?),
    })
}
