//! The plan for reading a reply.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_call::{ToolCall, ToolLookup, ToolSpec, Untrusted, untrusted::EchoGuard};
use plaincall_syntax::{Dialect, mentions_call_format, near_misses};

use crate::compiled::CompiledDialect;
use crate::counts::Counts;
use crate::key::Secret;
use crate::settings::ArgumentMode;
use crate::tools::{Choice, OfferedTools};

/// How the reply to a request is read and sent to the client. Created by [`translate`](crate::translation::translate()).
#[derive(Clone, Debug)]
pub struct ReplyPlan {
    pub(crate) compiled: Arc<CompiledDialect>,
    pub(crate) untrusted: Arc<UntrustedTexts>,
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
    pub(crate) taken: HashSet<String>,
}

/// The texts of a request that may contain calls that the model copies.
#[derive(Debug, Default)]
pub(crate) struct UntrustedTexts {
    /// The system prompt.
    pub(crate) system: Vec<String>,
    pub(crate) others: Vec<String>,
}

impl UntrustedTexts {
    pub(crate) fn iter(&self) -> impl Iterator<Item = &String> {
        self.system.iter().chain(&self.others)
    }
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
        &self.compiled.reply_dialect
    }

    /// Returns the offered tools.
    pub fn offered_tools(&self) -> &OfferedTools {
        &self.offer
    }

    /// Creates a guard that finds calls mentioned in untrusted texts, which the model must not be asked to write. This is
    /// slow, and most replies do not need it.
    pub(crate) fn guard(&self) -> EchoGuard {
        self.guard_of(self.untrusted.iter())
    }

    fn guard_of<'t>(&self, texts: impl Iterator<Item = &'t String>) -> EchoGuard {
        let mut guard = self.compiled.guard.clone();
        for text in texts {
            guard.observe(&Untrusted::new(text));
        }
        guard
    }

    /// Returns whether an invalid call may be copied from an untrusted text. A system prompt shows how tools are used, so
    /// there the values must appear too.
    pub(crate) fn may_be_copied(&self, call: &ToolCall) -> bool {
        let UntrustedTexts { system, others } = &*self.untrusted;
        let is_mentioned = self.guard_of(others.iter()).mentions(&call.name).is_some();
        is_mentioned || self.guard_of(system.iter()).echo_of(call).is_some()
    }

    /// Returns whether a reply without a call may only quote an untrusted text that looks like a call. In other call
    /// formats the name may be anywhere in the text, so every text that mentions such a format counts.
    pub(crate) fn is_quotation(&self, written: &str) -> bool {
        let near = near_misses(written, &self.compiled.prompt_dialect).unwrap_or_default();
        let is_format = near.iter().all(|miss| miss.format.is_some());
        if is_format && self.untrusted.iter().any(|text| mentions_call_format(text)) {
            return true;
        }
        let names = self.specs().map(|tool| &*tool.name);
        self.guard().mentions_in(written, names).is_some()
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
        self.offer.find(name).filter(|_| self.choice.allows(name))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        let tools = self.offer.iter();
        tools.filter(|tool| self.choice.allows(&tool.name))
    }
}
