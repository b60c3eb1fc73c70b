//! The arguments of a block call, for the example.

use std::borrow::Cow;

use plaincall_syntax::is_blank;
use serde_json::{Map, Value};

use crate::repair::kept::{Draft, Keeper, Part, Spelled, Texts, Wrong, key_of};
use crate::repair::placeholder::ended_early;
use plaincall_names::pointers::escape;
use plaincall_reply::ToolCall;
use plaincall_tool::{Arguments, ToolSpec, bind_arguments, flatten::flatten, json_text};

/// Returns the valid arguments of a call, and placeholders for the others.
pub(super) fn spelled(tool: &ToolSpec, call: &ToolCall, wrong: Wrong, keeper: &Keeper) -> Spelled {
    let reader = tool.schema().reader();
    let written = written(tool, call);
    let problems = bind_arguments(tool, &written).err().unwrap_or_default();
    let mut draft = Draft::new(tool, &reader, &written, &problems, keeper);
    draft.broken.extend(unreadable(call));
    let last = written.iter().last().filter(|_| wrong.is_truncated);
    let last = last.map(|last| last.pointer);
    // The end of an object or list is not known either.
    draft
        .broken
        .extend(last.filter(|last| last.contains('/')).map(key_of));
    all(draft, last)
}

/// Spells a draft. The end of the value at the pointer `last` is not known.
pub(super) fn all(mut draft: Draft<'_, '_>, last: Option<&str>) -> Spelled {
    let mut texts = Vec::new();
    for (key, part) in draft.parts() {
        match part {
            Part::Placeholder(value) => {
                let mut add = |pointer: &str, text| texts.push((pointer.to_owned(), text));
                draft.spread(&escape(&key), &value, &mut add);
            }
            Part::Kept => {
                for (pointer, text) in draft.lines(&key) {
                    let text = if last == Some(pointer) {
                        let words = ended_early(&draft.allowed(&key).in_words(), text.len());
                        draft.replaced(&key, words)
                    } else {
                        draft.kept(&key, text)
                    };
                    texts.push((pointer.to_owned(), text));
                }
            }
        }
    }
    draft.finish(Texts::Block(texts))
}

/// Returns the arguments that have values which could not be placed or are duplicates.
fn unreadable(call: &ToolCall) -> impl Iterator<Item = String> {
    // With a blank, it is a value on the line of its pointer.
    let unplaced = call.arguments.unplaced_pointers();
    let unplaced = unplaced.filter(|pointer| !pointer.contains(is_blank));
    let errors = call.diagnostics.iter().filter(|one| {
        let codes = ["duplicate_pointer", "value_too_long", "truncated_pointer"];
        one.is_argument_error() && codes.contains(&one.code)
    });
    let named = errors.filter_map(|one| one.message.rsplit(": ").next());
    unplaced.chain(named).map(key_of)
}

/// Returns the arguments as written. JSON without an argument marker is taken for them, and a value on the line of its
/// pointer for its value.
fn written<'c>(tool: &ToolSpec, call: &'c ToolCall) -> Cow<'c, Arguments> {
    let is_empty = call.arguments.is_empty();
    if let Some(object) = is_empty.then(|| json_inside(call.raw())).flatten() {
        let mut pairs = Vec::new();
        for (key, value) in object {
            let one = Map::from_iter([(key.clone(), value.clone())]);
            if let Ok(flat) = flatten(&one, Some(tool)) {
                pairs.extend(flat);
            } else {
                // It does not fit, but its text shows that it was present.
                pairs.push((escape(&key).into_owned(), value.to_string()));
            }
        }
        let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
        if let Ok(arguments) = Arguments::from_pairs_for(tool, pairs) {
            return Cow::Owned(arguments);
        }
    }
    if let Some(fixed) = call.fixed(tool) {
        return Cow::Owned(fixed);
    }
    let unplaced = call.arguments.unplaced_pointers();
    let mut on_line = unplaced
        .filter_map(|line| line.split_once(is_blank))
        .peekable();
    let placed = call.arguments.iter().map(|one| (one.pointer, one.text));
    let moved = on_line.peek().is_some().then(|| {
        let on_line = on_line.map(|(pointer, value)| (pointer, value.trim_matches(is_blank)));
        Arguments::from_pairs_for(tool, placed.chain(on_line)).ok()
    });
    moved
        .flatten()
        .map_or(Cow::Borrowed(&call.arguments), Cow::Owned)
}

fn json_inside(raw: &str) -> Option<Map<String, Value>> {
    let begin = raw.find('{')?;
    let end = raw.rfind('}')? + 1;
    match json_text::parse(raw.get(begin..end)?) {
        Ok(Value::Object(object)) => Some(object),
        _ => None,
    }
}
