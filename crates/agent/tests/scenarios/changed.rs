//! Tools that change between the parts of a conversation.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::time::Duration;

use plaincall_agent::plaincall::{RunEvent, Tool};
use plaincall_testkit::arbitrary_texts::Random;

/// A limit that only changed tools have.
const LIMIT: u32 = 7;

/// What has become of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    Same,
    /// It does not exist.
    Gone,
    /// It has another timeout and another limit.
    Settings,
    /// It has other parameters.
    Schema,
}

/// The changes of tools, by their names.
#[derive(Clone, Debug, Default)]
pub(crate) struct Changes(BTreeMap<String, Change>);

impl Changes {
    /// Returns random changes of these tools after a log. A tool stays as it was if a call of it has not ended, or if the last reply
    /// may have such a call.
    pub(crate) fn after(
        log: &[RunEvent],
        names: &[&str],
        kinds: &[Change],
        random: &mut Random,
    ) -> Self {
        let (mut open, mut text) = (BTreeMap::new(), String::new());
        let mut settings = BTreeMap::new();
        for event in log {
            match event {
                RunEvent::Run(begin) => settings = begin.tools.clone(),
                RunEvent::Resumed(resumed) if !resumed.tools.is_empty() => {
                    settings = resumed.tools.clone();
                }
                RunEvent::Call(call) => {
                    open.insert(call.call, call.name.to_string());
                }
                RunEvent::Result(result) => {
                    open.remove(&result.call);
                }
                RunEvent::Text(delta) => {
                    text.push_str(&String::from_utf8_lossy(delta.source.as_bytes()));
                }
                RunEvent::SubagentText(part) => text.push_str(&part.text),
                RunEvent::TurnEnd(_) => text.clear(),
                _ => {}
            }
        }
        let change = |name: &&str| {
            let mut change = kinds[random.below(kinds.len())];
            if text.contains(name) || open.values().any(|open| open == name) {
                let before = settings.get(*name);
                let is_limited =
                    before.is_some_and(|tool| tool.policy.max_concurrent == NonZeroU32::new(LIMIT));
                change = match before {
                    None => Change::Gone,
                    Some(_) if is_limited => Change::Settings,
                    Some(_) => Change::Same,
                };
            }
            ((*name).to_owned(), change)
        };
        Self(names.iter().map(change).collect())
    }

    pub(crate) fn of(&self, name: &str) -> Change {
        self.0.get(name).copied().unwrap_or(Change::Same)
    }

    /// Returns the tools that are gone.
    pub(crate) fn gone(&self) -> impl Iterator<Item = &str> {
        let gone = self.0.iter().filter(|(_, change)| **change == Change::Gone);
        gone.map(|(name, _)| name.as_str())
    }

    /// Returns whether the model reads the same about its tools.
    pub(crate) fn is_hidden(&self) -> bool {
        let mut changes = self.0.values();
        changes.all(|change| matches!(change, Change::Same | Change::Settings))
    }

    /// Changes a tool, except for its parameters.
    pub(crate) fn apply(&self, tool: Tool) -> Option<Tool> {
        let longer = tool.policy().timeout + Duration::from_millis(50);
        match self.of(tool.name()) {
            Change::Gone => None,
            Change::Settings => Some(tool.timeout(longer).max_concurrent(LIMIT)),
            Change::Same | Change::Schema => Some(tool),
        }
    }
}
