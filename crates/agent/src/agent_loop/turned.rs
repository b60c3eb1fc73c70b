//! Replies with their results.

use std::sync::Arc;

use plaincall::reply::{CallError, MissingEnd, ReplyItem, ToolCall};
use plaincall::{CallResult, Status, Toolbox, TurnResults};

use crate::answer::AgentErrorKind;
use crate::model::{Finish, Usage};

/// A reply, its calls and their results.
#[derive(Debug)]
pub struct Turned {
    /// The reply, byte for byte.
    pub written: String,
    /// The tokens of the reply, if the server reports them.
    pub usage: Option<Usage>,
    /// Its text and calls.
    pub read: ReadReply,
    /// The results of its calls.
    pub results: TurnResults,
    /// How it ended.
    pub finish: Finish,
    /// The error that ends the question after this turn.
    pub end: Option<AgentErrorKind>,
}

/// The text and the calls of a reply.
#[derive(Debug, Default)]
pub struct ReadReply {
    /// The text outside calls, without invented results.
    pub(crate) text: String,
    /// The calls that were fully parsed, by index, in order.
    calls: Vec<(u32, Arc<ToolCall>)>,
    /// The tool that finished the run, and its full output.
    pub(crate) finished: Option<(Arc<str>, Arc<str>)>,
}

impl ReadReply {
    /// Returns the text outside calls.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Keeps an item of the reply. `number` returns the index in the run of a call of the reply.
    pub fn item(&mut self, item: &ReplyItem<'_>, number: impl Fn(usize) -> u32) {
        match item {
            ReplyItem::Text(text) => self.text.push_str(text),
            ReplyItem::Call(read) => {
                self.calls
                    .push((number(read.call.index), Arc::clone(&read.call)));
            }
            _ => {}
        }
    }

    /// Keeps the complete result of a call of the reply.
    pub fn result(&mut self, result: &CallResult, tools: &Toolbox) {
        let tool = tools.get(&result.name);
        if result.status == Status::Ok && tool.is_some_and(|tool| tool.policy().finishes) {
            let output = result.output.clone().unwrap_or_default();
            self.finished = Some((Arc::clone(&result.name), output));
        }
    }
}

impl Turned {
    /// The call with this index, if it was fully parsed.
    pub(super) fn call(&self, index: u32) -> Option<&ToolCall> {
        let calls = &self.read.calls;
        let found = calls.binary_search_by_key(&index, |(index, _)| *index);
        calls.get(found.ok()?).map(|(_, call)| &**call)
    }

    pub(super) fn unclosed(&self) -> u32 {
        let is_unclosed = |one: &&CallResult| {
            use MissingEnd::{EndedByNextCall, NoEndMarker};
            let error = one.call_error.as_deref();
            matches!(
                error,
                Some(CallError::NotClosed {
                    why: NoEndMarker | EndedByNextCall,
                    ..
                })
            )
        };
        let count = self.results.iter().filter(is_unclosed).count();
        u32::try_from(count).unwrap_or(u32::MAX)
    }
}
