//! What a reply says, for those who watch and for what is said about it later.

use std::collections::VecDeque;
use std::sync::Arc;

use plaincall::call::{ReplyItem, ToolCall};

use crate::event::AgentEvent;

/// What was read of one reply.
#[derive(Default)]
pub(super) struct Reading {
    /// What nobody has been told yet.
    pub(super) events: VecDeque<AgentEvent>,
    /// The calls that are complete.
    pub(super) calls: Vec<Arc<ToolCall>>,
    /// The text outside of calls, without invented results.
    pub(super) said: String,
}

impl Reading {
    pub(super) fn take(&mut self, item: &ReplyItem<'_>) {
        let number = |call: usize| u32::try_from(call).unwrap_or(u32::MAX);
        self.events.push_back(match item {
            ReplyItem::Text(text) => {
                self.said.push_str(text);
                AgentEvent::Text(text.to_string())
            }
            ReplyItem::Reasoning(text) => AgentEvent::Reasoning(text.to_string()),
            ReplyItem::CallStart(started) => AgentEvent::Call {
                call: number(started.index),
                id: started.id.as_str().into(),
                name: started.name.as_str().into(),
            },
            ReplyItem::ArgumentDelta {
                call,
                pointer,
                text,
            } => AgentEvent::Value {
                call: number(*call),
                pointer: pointer.clone(),
                text: text.to_string(),
            },
            ReplyItem::Call { call, .. } => return self.calls.push(Arc::clone(call)),
            _ => return,
        });
    }
}
