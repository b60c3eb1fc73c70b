//! Definitions of tools as untrusted text (`spec/running.md`, "Echoes").

use std::sync::Arc;

use plaincall_call::{Untrusted, untrusted::EchoGuard};

use crate::event::RunEvent;
use crate::toolbox::Toolbox;

pub(crate) type Definition = (Arc<str>, Arc<Untrusted<'static>>);

/// Returns the definitions that contain a call, except those that are already in the log.
pub(crate) fn definitions(
    toolbox: &Toolbox,
    guard: Option<&EchoGuard>,
    history: &[RunEvent],
) -> Vec<Definition> {
    let of_tools = toolbox.iter().filter_map(|tool| {
        let text = tool.spec().as_untrusted();
        let text = Arc::new(guard?.relevant_part(&text)?.into_owned());
        let from = tool.origin().map(|origin| format!(" from {origin}"));
        let from = from.unwrap_or_default();
        let name = format!("the definition of the tool {}{from}", tool.name());
        Some((name.replace(char::is_control, " ").into(), text))
    });
    let is_known = |(name, text): &Definition| {
        let mut past = history.iter();
        past.any(|event| {
            matches!(event, RunEvent::Untrusted(known) if known.name == *name && known.text.as_ref() == Some(text))
        })
    };
    of_tools
        .filter(|definition| !is_known(definition))
        .collect()
}
