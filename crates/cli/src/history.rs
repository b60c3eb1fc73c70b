//! The events of a logged run, for commands that resume it.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use plaincall::{
    Effect, RunEvent, Stop,
    events::{RunBegin, TurnEnd},
    log::TornTail,
};
use serde_json::Value;

/// The events of a log. Empty for a new run.
#[derive(Clone, Debug, Default)]
pub(crate) struct History {
    pub(crate) events: Vec<RunEvent>,
}

/// An interrupted call of a tool that may change something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Interrupted {
    pub(crate) id: String,
    pub(crate) name: String,
    /// Start time since the beginning of the run.
    pub(crate) started: Duration,
}

impl History {
    /// Returns the first event, if the run has started.
    pub(crate) fn begin(&self) -> Option<&RunBegin> {
        match self.events.first() {
            Some(RunEvent::Run(begin)) => Some(begin),
            _ => None,
        }
    }

    /// Returns the time of the last event.
    pub(crate) fn at(&self) -> Duration {
        let times = self.events.iter().map(RunEvent::at);
        times.max().unwrap_or_default()
    }

    fn last_turn(&self) -> &[RunEvent] {
        let is_turn = |event: &RunEvent| matches!(event, RunEvent::Turn(_));
        let first = self.events.iter().rposition(is_turn);
        first
            .and_then(|first| self.events.get(first..))
            .unwrap_or_default()
    }

    /// Returns the text of the last reply so far.
    pub(crate) fn text(&self) -> Vec<u8> {
        let mut text = Vec::new();
        for event in self.last_turn() {
            if let RunEvent::Text(delta) = event {
                text.extend_from_slice(delta.source.as_bytes());
            }
        }
        text
    }

    /// Returns the number of untrusted texts that the model received.
    pub(crate) fn untrusted(&self) -> usize {
        let is_untrusted = |event: &&RunEvent| matches!(event, RunEvent::Untrusted(_));
        self.events.iter().filter(is_untrusted).count()
    }

    /// Returns why the reply ended, if it did.
    pub(crate) fn stop(&self) -> Option<Stop> {
        self.last_turn().iter().find_map(|event| match event {
            RunEvent::ReplyEnd(end) => Some(end.stop),
            _ => None,
        })
    }

    /// Returns the end of the last turn, if it ended.
    pub(crate) fn end(&self) -> Option<&TurnEnd> {
        self.last_turn().iter().find_map(|event| match event {
            RunEvent::TurnEnd(end) => Some(end),
            _ => None,
        })
    }

    /// Returns whether all calls were cancelled. No call starts after that.
    pub(crate) fn was_cancelled(&self) -> bool {
        self.last_turn()
            .iter()
            .any(|event| matches!(event, RunEvent::Cancel(_)))
    }

    /// Returns whether a tool writes by any of its recorded settings, or has none.
    fn is_write(&self, name: &str) -> bool {
        let recorded = self.events.iter().filter_map(|event| match event {
            RunEvent::Run(begin) => begin.tools.get(name),
            RunEvent::Resumed(resumed) => resumed.tools.get(name),
            _ => None,
        });
        let mut effects = recorded.map(|tool| tool.effect).peekable();
        effects.peek().is_none() || effects.any(|effect| effect == Effect::Write)
    }

    /// Returns whether a call of a tool that writes has appeared and has no result.
    pub(crate) fn may_be_writing(&self) -> bool {
        let mut open = BTreeSet::new();
        for event in &self.events {
            match event {
                RunEvent::Call(call) if self.is_write(&call.name) => {
                    open.insert(call.call);
                }
                RunEvent::Result(result) => {
                    open.remove(&result.call);
                }
                _ => {}
            }
        }
        !open.is_empty()
    }

    /// Returns whether a call of a tool that writes may be in these lines behind the events, some of which are damaged.
    pub(crate) fn may_have_written(&self, lines: &[u8]) -> bool {
        let lines = lines.split(|byte| *byte == b'\n');
        let mut lines = lines.filter(|line| !line.is_empty());
        lines.any(|line| {
            let text = String::from_utf8_lossy(line);
            let kind = text.split_once("\"event\":\"");
            let kind = kind.and_then(|(_, rest)| rest.split('"').next());
            match kind {
                Some(
                    "text" | "message" | "turn" | "turn_end" | "reply_end" | "untrusted"
                    | "resumed",
                ) => false,
                // Any other line, and any that does not name its kind, could be about a call.
                Some(_) => match serde_json::from_str::<Value>(&text) {
                    Ok(event) => event["name"]
                        .as_str()
                        .is_none_or(|name| self.is_write(name)),
                    Err(_) => true,
                },
                None => true,
            }
        })
    }

    /// Returns the interrupted calls with unknown outcomes, by number.
    pub(crate) fn interrupted(&self) -> BTreeMap<u32, Interrupted> {
        let is_write = |name: &str| self.is_write(name);
        let call = |id: &str, name: &str, started| Interrupted {
            id: id.to_owned(),
            name: name.to_owned(),
            started,
        };
        let mut all = BTreeMap::new();
        let mut may_start = BTreeMap::new();
        for event in &self.events {
            match event {
                RunEvent::Admitted(admitted) if is_write(&admitted.name) => {
                    let call = call(&admitted.id, &admitted.name, admitted.at);
                    may_start.insert(admitted.call, call);
                }
                RunEvent::Start(started) if is_write(&started.name) => {
                    may_start.remove(&started.call);
                    let call = call(&started.id, &started.name, started.at);
                    all.insert(started.call, call);
                }
                RunEvent::Result(result) => {
                    may_start.remove(&result.call);
                    all.remove(&result.call);
                }
                // The retry may not have started.
                RunEvent::Retry(moment) => {
                    if let Some(call) = all.remove(&moment.call) {
                        may_start.insert(moment.call, call);
                    }
                }
                RunEvent::DamagedEnd(_) => all.append(&mut may_start),
                _ => {}
            }
        }
        all
    }
}

/// Describes how resuming a log handles its damaged end.
pub(crate) fn torn_tail_outcome(torn: &TornTail) -> &'static str {
    if torn.may_be_start {
        "kept, because it may be the start of a call of a tool that writes; such a call counts as started"
    } else {
        "removed"
    }
}
