//! How a reply is read and given to the client.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_call::{EchoGuard, ToolLookup, ToolSpec, Untrusted};
use plaincall_syntax::{Dialect, mentions_call_format, near_misses};

use crate::key::Secret;
use crate::offer::{Choice, Offer};
use crate::settings::ArgumentMode;
use crate::spoken::Spoken;

/// How the reply to a request is read and given to the client. [`translate`](crate::translate) makes it.
#[derive(Clone, Debug)]
pub struct ReplyPlan {
    pub(crate) spoken: Arc<Spoken>,
    pub(crate) untrusted: Arc<[String]>,
    pub(crate) secret: Secret,
    pub(crate) offer: Arc<Offer>,
    pub(crate) choice: Choice,
    /// Whether a reply holds at most one call.
    pub(crate) one_call: bool,
    pub(crate) arguments: ArgumentMode,
    pub(crate) repair_rounds: u32,
    /// Whether the client has set words at which the model stops: then a natural end may be one in the middle.
    pub(crate) stops_anywhere: bool,
    pub(crate) includes_usage: bool,
    pub(crate) taken: HashSet<String>,
}

impl ReplyPlan {
    /// The dialect in which the reply is read.
    pub fn dialect(&self) -> &Dialect {
        &self.spoken.read
    }

    /// The tools that are offered.
    pub fn offer(&self) -> &Offer {
        &self.offer
    }

    /// Knows the calls that untrusted texts mention, which the model must not be asked to write. It takes time to make,
    /// and most replies need none.
    pub(crate) fn guard(&self) -> EchoGuard {
        let mut guard = self.spoken.guard.clone();
        for text in self.untrusted.iter() {
            guard.hear(&Untrusted::new(text));
        }
        guard
    }

    /// Whether a reply without a call may only quote an untrusted text that looks like one. Behind what begins a call in
    /// another format, its name may stand anywhere: any such text counts.
    pub(crate) fn is_quotation(&self, written: &str) -> bool {
        let near = near_misses(written, &self.spoken.told).unwrap_or_default();
        let is_format = near.iter().all(|miss| miss.format.is_some());
        if is_format && self.untrusted.iter().any(|text| mentions_call_format(text)) {
            return true;
        }
        let names = self.specs().map(|tool| &*tool.name);
        self.guard().mentions_in(written, names).is_some()
    }

    /// Whether the arguments of a call are sent while the call may still prove invalid.
    pub fn streams_arguments(&self) -> bool {
        self.arguments == ArgumentMode::Stream
    }

    /// Whether the model may be asked again, hidden from the client.
    pub(crate) fn may_repair(&self) -> bool {
        !self.streams_arguments() && self.choice != Choice::None
    }

    /// Whether the client wants to know at the end of a stream what the answer cost.
    pub fn includes_usage(&self) -> bool {
        self.includes_usage
    }
}

/// The tools that may be called.
impl ToolLookup for ReplyPlan {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        self.offer.find(name).filter(|_| self.choice.allows(name))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        let tools = self.offer.iter();
        tools.filter(|tool| self.choice.allows(&tool.name))
    }
}
