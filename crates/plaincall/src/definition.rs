//! Definitions of tools as untrusted text (`spec/running.md`, "Echoes").

use plaincall_reply::{Untrusted, untrusted::EchoGuard};

use crate::event::{RunEvent, UntrustedText};
use crate::toolbox::Toolbox;

/// Returns the events of the definitions that contain a call, except those that are already in the log.
pub(crate) fn definitions(
    toolbox: &Toolbox,
    guard: Option<&EchoGuard>,
    history: &[RunEvent],
) -> Vec<RunEvent> {
    let of_tools = toolbox.iter().filter_map(|tool| {
        let text = Untrusted::new(tool.spec().text());
        let text = guard?.relevant_part(&text)?.into_owned();
        let from = tool.origin().map(|origin| format!(" from {origin}"));
        let from = from.unwrap_or_default();
        let name = format!("the definition of the tool {}{from}", tool.name());
        Some(UntrustedText::new(&name, Some(text)))
    });
    let is_known = |definition: &UntrustedText| {
        let mut past = history.iter();
        past.any(|event| {
            matches!(event, RunEvent::Untrusted(known) if known.name == definition.name && known.text == definition.text)
        })
    };
    of_tools
        .filter(|definition| !is_known(definition))
        .map(RunEvent::Untrusted)
        .collect()
}
