//! The plan for reading a reply.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_prompt::few_shot::ShownCalls;
use plaincall_reply::{ToolCall, rescue::Format, untrusted::EchoGuard};
use plaincall_syntax::Dialect;
use plaincall_tool::{ToolLookup, ToolSpec};

use crate::compiled::CompiledDialect;
use crate::counts::Counts;
use crate::key::Secret;
use crate::reply::native_calls::tool_name;
use crate::reply::untrusted::UntrustedTexts;
use crate::settings::ArgumentMode;
use crate::tools::{Choice, OfferedTools};

/// How the reply to a request is read and sent to the client. Created by [`translate`](crate::translation::translate()).
#[derive(Clone, Debug)]
pub struct ReplyPlan {
    pub(crate) compiled: Arc<CompiledDialect>,
    pub(crate) untrusted: Arc<UntrustedTexts>,
    /// The calls of the few-shot examples.
    pub(crate) examples: ShownCalls,
    /// The counters of the request.
    pub(crate) counts: Counts,
    pub(crate) secret: Secret,
    pub(crate) offer: Arc<OfferedTools>,
    pub(crate) choice: Choice,
    /// Whether a reply has at most one call.
    pub(crate) one_call: bool,
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair_rounds: u32,
    /// Whether the client has set stop sequences: a natural end may then be in the middle of a call.
    pub(crate) stops_anywhere: bool,
    pub(crate) includes_usage: bool,
    pub(crate) mode: ReplyMode,
    /// In native mode: the formats in which calls that arrive as text are accepted.
    pub(crate) formats: Vec<Format>,
    pub(crate) taken: HashSet<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyMode {
    /// The text may have calls.
    Calls,
    /// The text is sent as it is, because the request has no tools and no calls.
    Text,
    /// The model server has tools, and its calls are sent unchanged.
    Native,
}

impl ReplyPlan {
    /// Returns the dialect of the reply.
    pub fn dialect(&self) -> &Dialect {
        &self.compiled.dialect
    }

    /// Returns the offered tools.
    pub fn offered_tools(&self) -> &OfferedTools {
        &self.offer
    }

    /// Uses the guard that finds calls in the untrusted texts, which the model must not be asked to write.
    pub(crate) fn with_guard<T>(&self, use_guard: impl FnOnce(&mut EchoGuard) -> T) -> T {
        self.untrusted
            .with_guard(&self.compiled.guard, self, use_guard)
    }

    /// Returns whether an invalid call may be copied from an untrusted text.
    pub(crate) fn may_be_copied(&self, call: &ToolCall) -> bool {
        self.with_guard(|guard| guard.mentions(&call.name).is_some())
    }

    /// Returns whether a reply without a call may only quote an untrusted text that looks like a call.
    pub(crate) fn is_quotation(&self, written: &str) -> bool {
        let names = self.specs().map(|tool| &*tool.name);
        self.with_guard(|guard| guard.mentions_in(written, names).is_some())
    }

    /// Returns whether arguments are sent before the call has been validated.
    pub fn streams_arguments(&self) -> bool {
        self.arguments == ArgumentMode::Stream
    }

    /// Returns whether invalid calls are repaired, hidden from the client.
    pub(crate) fn may_repair(&self) -> bool {
        let is_checked = match self.mode {
            ReplyMode::Calls => !self.streams_arguments(),
            ReplyMode::Native => self.compiled.rescue.is_some(),
            ReplyMode::Text => false,
        };
        is_checked && self.choice != Choice::None
    }

    /// Returns whether the client requested the usage at the end of the stream.
    pub fn includes_usage(&self) -> bool {
        self.includes_usage
    }
}

/// Finds only the tools that may be called.
impl ToolLookup for ReplyPlan {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        let name = match self.mode {
            ReplyMode::Native => tool_name(name, &self.offer),
            ReplyMode::Calls | ReplyMode::Text => name,
        };
        let found = self.offer.find(name);
        found.filter(|(_, tool)| self.choice.allows(&tool.name))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        let tools = self.offer.iter();
        tools.filter(|tool| self.choice.allows(&tool.name))
    }
}
