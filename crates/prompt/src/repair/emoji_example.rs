//! The line and the body of an emoji call, for the example.

use serde_json::{Map, Value};

use crate::repair::kept::{Draft, Keeper, Part, Spelled, Texts, Wrong};
use crate::repair::placeholder::{ended_early, placeholder, word_on_line};
use plaincall_names::pointers::escape;
use plaincall_reply::{ToolCall, bind};
use plaincall_tool::bind::Problems;
use plaincall_tool::bind::emoji::bind_emoji;
use plaincall_tool::usage::{Usage, UsageBody};
use plaincall_tool::{Parameter, ToolSpec};

/// Returns the valid arguments of a call, and placeholders for the others.
pub(super) fn spelled(tool: &ToolSpec, call: &ToolCall, wrong: Wrong, keeper: &Keeper) -> Spelled {
    let problems = bind(tool, call).err().unwrap_or_default();
    let written = bind_emoji(tool, call.emoji_parts(), &mut Problems::default());
    let reader = tool.schema().reader();
    let draft = Draft::new(tool, &reader, &written, &problems, keeper);
    all(draft, wrong.is_truncated)
}

/// Spells a draft. The end of the body may not be known.
pub(super) fn all(mut draft: Draft<'_, '_>, is_truncated: bool) -> Spelled {
    let usage = draft.tool.usage();
    let raw_args = line(&mut draft, &usage);
    let body = match usage.body {
        UsageBody::Nothing => String::new(),
        UsageBody::Parameter(parameter) => body(&mut draft, parameter, is_truncated),
        UsageBody::Json => json(&mut draft).to_string(),
    };
    draft.finish(Texts::Emoji { raw_args, body })
}

fn line(draft: &mut Draft<'_, '_>, usage: &Usage<'_>) -> String {
    let mut words = Vec::new();
    for item in &usage.line {
        let name = &item.parameter.name;
        let Some(part) = draft.part(name) else {
            break;
        };
        let kept = draft.written.get(&item.parameter.pointer());
        let kept = kept.filter(|text| matches!(part, Part::Kept) && !text.is_empty());
        let what = match kept.map(|text| draft.keeper.placeholder(text).ok_or(text)) {
            Some(Err(text)) => {
                words.push(text.to_owned());
                continue;
            }
            Some(Ok(what)) => what.trim_matches(['<', '>']).to_owned(),
            None => draft.allowed(name).in_words(),
        };
        words.push(draft.replaced(name, word_on_line(name, &what, item.takes_rest)));
    }
    words.join(" ")
}

fn body(draft: &mut Draft<'_, '_>, parameter: &Parameter, is_truncated: bool) -> String {
    let name = &parameter.name;
    let part = draft.part(name);
    let text = draft.written.get(&parameter.pointer());
    let words = format!("{name}: {}", draft.allowed(name).in_words());
    let what = match (part, text) {
        _ if is_truncated => ended_early(&words, text.map_or(0, str::len)),
        (None, _) => return String::new(),
        (Some(Part::Kept), Some(text)) => return draft.kept(name, text),
        _ => placeholder(&words),
    };
    draft.replaced(name, what)
}

fn json(draft: &mut Draft<'_, '_>) -> Value {
    let mut object = Map::new();
    for (key, part) in draft.parts() {
        let value = match part {
            Part::Kept => {
                let value = draft.value(&key);
                let placeholder = draft.keeper.placeholder(&value.to_string());
                placeholder.map_or(value, |text| draft.replaced(&key, text).into())
            }
            Part::Placeholder(value) => {
                draft.spread(&escape(&key), &value, &mut |_, _| {});
                value
            }
        };
        object.insert(key, value);
    }
    object.into()
}
