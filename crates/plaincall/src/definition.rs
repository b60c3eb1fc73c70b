//! What a run hears of tools whose definitions come from outside (`spec/running.md`, "Echoes").

use std::sync::Arc;

use plaincall_call::{EchoGuard, Foreign, ToolSpec};
use serde_json::Value;

use crate::event::RunEvent;
use crate::toolbox::Toolbox;

/// A text from outside, and what it is.
pub(crate) type Definition = (Arc<str>, Arc<Foreign<'static>>);

/// The definitions from outside that a call can stand in, but for those that the log has heard already.
pub(crate) fn definitions(
    toolbox: &Toolbox,
    guard: &EchoGuard,
    history: &[RunEvent],
) -> Vec<Definition> {
    let of_tools = toolbox.iter().filter_map(|tool| {
        let origin = tool.origin()?;
        let text = Foreign::new(text_of(tool.spec()));
        let text = Arc::new(guard.what_counts(&text)?.into_owned());
        let name = format!("the definition of the tool {} from {origin}", tool.name());
        Some((name.replace(char::is_control, " ").into(), text))
    });
    let is_known = |(name, text): &Definition| {
        let mut past = history.iter();
        past.any(|event| {
            matches!(event, RunEvent::Heard(heard) if heard.name == *name && heard.text.as_ref() == Some(text))
        })
    };
    of_tools
        .filter(|definition| !is_known(definition))
        .collect()
}

/// All the words of a definition as one text, in the order in which a model reads them: a call may be spread over them.
fn text_of(spec: &ToolSpec) -> String {
    let mut words = vec![spec.name.as_str(), &spec.description];
    gather(spec.schema().document(), &mut words);
    words.join("\n")
}

/// A schema that was read is not nested deep enough to matter.
fn gather<'v>(value: &'v Value, words: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(members) => {
            for (name, value) in members {
                words.push(name);
                gather(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
