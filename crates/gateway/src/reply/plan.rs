//! How a reply is read and given to the client.

use std::collections::HashSet;
use std::sync::Arc;

use plaincall_call::ToolSpec;
use plaincall_syntax::Dialect;

use crate::offer::{Choice, Offer};
use crate::settings::{Mode, ReasoningSpan};
use crate::spoken::Spoken;

/// What counts of that which only looks like a call. The model may quote it, if it has read it.
#[derive(Clone, Debug)]
pub(crate) enum Near {
    /// All: it has read nothing of the kind.
    All,
    /// What stands in a reply that holds the key of the markers.
    WithKey(String),
    /// Nothing.
    Nothing,
}

/// How the reply to a request is read and given to the client. [`translate`](crate::translate) makes it.
#[derive(Clone, Debug)]
pub struct ReplyPlan {
    /// The dialect of the conversation.
    pub(crate) spoken: Arc<Spoken>,
    /// What counts of that which only looks like a call.
    pub(crate) near: Near,
    pub(crate) reasoning: Option<ReasoningSpan>,
    pub(crate) offer: Arc<Offer>,
    pub(crate) choice: Choice,
    /// Whether a reply holds at most one call.
    pub(crate) one_call: bool,
    pub(crate) mode: Mode,
    pub(crate) repair_rounds: u32,
    /// Whether the client has set words at which the model stops: then a natural end may be one in the middle.
    pub(crate) stops_anywhere: bool,
    pub(crate) includes_usage: bool,
    /// The ids of the calls of earlier turns.
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

    /// The tools that may be called.
    pub(crate) fn allowed(&self) -> Vec<&ToolSpec> {
        let tool = |name: &String| self.offer.get(name).map(|tool| &**tool);
        match &self.choice {
            Choice::None => Vec::new(),
            Choice::Auto | Choice::Required => self.offer.iter().collect(),
            Choice::Only { names, .. } => names.iter().filter_map(tool).collect(),
        }
    }

    /// When calls leave.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// Whether the client wants to know at the end of a stream what the answer cost.
    pub fn includes_usage(&self) -> bool {
        self.includes_usage
    }
}
