//! What a reply says, read once more beside the run: for those who watch, and to know what was wrong.

use std::collections::VecDeque;
use std::sync::Arc;

use plaincall::call::{Collected, Collector, InventedResults, ToolCall};
use plaincall::syntax::{Event, EventKind, Slot};

use crate::event::AgentEvent;

/// Reads the events of one reply.
pub(super) struct Reading<'c> {
    collector: &'c mut Collector,
    /// What nobody has been told yet.
    pub(super) events: VecDeque<AgentEvent>,
    /// The calls that are complete.
    pub(super) calls: Vec<ToolCall>,
    /// The text outside of calls, without invented results.
    pub(super) said: String,
    invented: InventedResults,
    call: u32,
    pointer: Option<Arc<str>>,
}

impl<'c> Reading<'c> {
    pub(super) fn new(collector: &'c mut Collector) -> Self {
        collector.begin_turn();
        Self {
            collector,
            events: VecDeque::new(),
            calls: Vec::new(),
            said: String::new(),
            invented: InventedResults::default(),
            call: 0,
            pointer: None,
        }
    }

    /// Takes an event of the parser.
    pub(super) fn take(&mut self, event: &Event<'_>) {
        match &event.kind {
            EventKind::Text(text) => {
                let text = self.invented.text(text).into_owned();
                self.say(text);
            }
            EventKind::Reasoning(text) => {
                self.events
                    .push_back(AgentEvent::Reasoning(text.to_string()));
            }
            EventKind::ValueStart(slot) => {
                self.pointer = match slot {
                    Slot::Argument(pointer) => Some(pointer.as_str().into()),
                    Slot::Body => None,
                };
            }
            EventKind::ValueDelta(text) => self.events.push_back(AgentEvent::Value {
                call: self.call,
                pointer: self.pointer.clone(),
                text: text.to_string(),
            }),
            _ => {}
        }
        match self.collector.push(event) {
            Some(Collected::Started(started)) => {
                self.end_text();
                self.invented.call(&started.name);
                self.call = u32::try_from(started.index).unwrap_or(u32::MAX);
                self.events.push_back(AgentEvent::Call {
                    call: self.call,
                    id: started.id.into(),
                    name: started.name.into(),
                });
            }
            Some(Collected::Finished(call)) => self.calls.push(*call),
            None => {}
        }
    }

    /// No more text comes before the next call or the end.
    pub(super) fn end_text(&mut self) {
        let rest = self.invented.rest();
        self.say(rest);
    }

    fn say(&mut self, text: String) {
        if !text.is_empty() {
            self.said.push_str(&text);
            self.events.push_back(AgentEvent::Text(text));
        }
    }
}
