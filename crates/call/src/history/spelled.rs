//! A call whose arguments are JSON, in the syntax of a dialect (`spec/history.md` 2).

use plaincall_syntax::{Call, Dialect, Syntax, render};
use serde_json::{Map, Value};

use crate::arguments::Arguments;
use crate::bind::Problems;
use crate::bind::block::bind_block;
use crate::bind::emoji::bind_emoji;
use crate::document::Document;
use crate::flatten::flatten;
use crate::invisible::in_name;
use crate::spell_emoji::{EmojiText, spell_emoji};
use crate::tool::ToolSpec;
use crate::tool::usage::UsageBody;

/// A call to be written.
pub(crate) struct CallToSpell<'c> {
    pub(crate) name: &'c str,
    pub(crate) id: Option<&'c str>,
    pub(crate) dependencies: Vec<&'c str>,
    pub(crate) arguments: &'c Map<String, Value>,
}

/// The text of the call, its last line end included; `None` if what is read of it would be something else.
pub(crate) fn spelled(
    call: &CallToSpell<'_>,
    tool: Option<&ToolSpec>,
    dialect: &Dialect,
) -> Option<String> {
    let mut names = [call.name]
        .into_iter()
        .chain(call.id)
        .chain(call.dependencies.iter().copied());
    if names.any(|name| in_name(name).is_some()) {
        return None;
    }
    match dialect.syntax()? {
        Syntax::Block => in_block(call, tool, dialect),
        Syntax::Emoji => in_emoji(call, tool, dialect),
    }
}

/// Flattening reads back what the pairs mean, rendering what the text says.
fn in_block(call: &CallToSpell<'_>, tool: Option<&ToolSpec>, dialect: &Dialect) -> Option<String> {
    let pairs = flatten(call.arguments, tool).ok()?;
    let call = Call::Block {
        name: call.name,
        id: call.id.filter(|id| !id.is_empty()),
        dependencies: call.dependencies.clone(),
        arguments: borrowed(&pairs),
    };
    render(&call, dialect).ok()
}

fn in_emoji(call: &CallToSpell<'_>, tool: Option<&ToolSpec>, dialect: &Dialect) -> Option<String> {
    let spelled = match tool {
        Some(tool) => emoji_text(tool, call.arguments)?,
        None => unknown_emoji_text(call.arguments)?,
    };
    let text = render(
        &Call::Emoji {
            name: call.name,
            raw_args: &spelled.raw_args,
            body: &spelled.body,
        },
        dialect,
    )
    .ok()?;
    let Some(tool) = tool else {
        return Some(text);
    };
    // Only reading it shows what the line and the body mean to the tool.
    let document = Document::parse(&text, dialect).ok()?;
    let mut problems = Problems::default();
    let back = bind_emoji(tool, document.calls().next()?, &mut problems).to_value();
    let is_same = problems.is_empty() && back.as_object() == Some(call.arguments);
    is_same.then_some(text)
}

/// The line and the body for a tool.
fn emoji_text(tool: &ToolSpec, object: &Map<String, Value>) -> Option<EmojiText> {
    if tool.usage().body == UsageBody::Json {
        let body = Value::Object(object.clone()).to_string();
        return Some(EmojiText {
            raw_args: String::new(),
            body,
        });
    }
    let pairs = flatten(object, Some(tool)).ok()?;
    let written = Arguments::from_pairs_for(tool, borrowed(&pairs)).ok()?;
    let mut problems = Problems::default();
    let bound = bind_block(tool, &written, &mut problems);
    spell_emoji(tool, &bound).ok()
}

/// A tool without a definition has no named arguments: its calls are told to others as line and body
/// ([`openai_calls`](crate::openai_calls)).
fn unknown_emoji_text(object: &Map<String, Value>) -> Option<EmojiText> {
    let text = |key: &str| object.get(key).and_then(Value::as_str).map(str::to_owned);
    (object.len() == 2).then_some(())?;
    Some(EmojiText {
        raw_args: text("raw_args")?,
        body: text("body")?,
    })
}

fn borrowed(pairs: &[(String, String)]) -> Vec<(&str, &str)> {
    pairs
        .iter()
        .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
        .collect()
}
