//! The inputs of the run state.

use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, ReplyItem, Stop, Untrusted, few_shot::ShownCall};
use plaincall_plan::CallIndex;

use crate::attempt::Ended;
use crate::call_arguments::SubmittedArguments;
use crate::event::{AdmittedBy, Author};
use crate::source::Source;
use crate::usage::Usage;

#[derive(Debug)]
pub(crate) enum Input {
    /// The model reads examples with these calls, and no others.
    Examples(Arc<[ShownCall]>),
    /// The model receives an untrusted text.
    Untrusted {
        name: Arc<str>,
        /// The part from which a call could be copied.
        text: Option<Arc<Untrusted<'static>>>,
    },
    Message {
        author: Author,
        text: Arc<str>,
    },
    /// A turn starts, possibly with its own limit of calls.
    BeginTurn {
        calls: Option<u32>,
    },
    /// A part of the reply arrives.
    Text {
        /// `None` if no subscriber needs it.
        source: Option<Source>,
        items: Vec<ReplyItem<'static>>,
    },
    /// The reply ends.
    EndReply {
        stop: Stop,
        usage: Option<Usage>,
        items: Vec<ReplyItem<'static>>,
    },
    /// A call is submitted, possibly by the tool of another call.
    Submit {
        name: Arc<str>,
        arguments: Arc<SubmittedArguments>,
        parent: Option<u32>,
    },
    Admit {
        call: CallIndex,
        by: AdmittedBy,
        /// The reason, if the gate stated one.
        reason: Option<Arc<str>>,
        always: bool,
        /// The arguments, if they were edited.
        arguments: Option<Arc<Arguments>>,
    },
    Deny {
        call: CallIndex,
        reason: String,
    },
    Ended {
        call: CallIndex,
        ended: Ended,
    },
    /// A part of a reply arrives in the conversation that a running call runs.
    SubagentText {
        call: CallIndex,
        text: Arc<str>,
        stop: Option<Stop>,
        usage: Option<Usage>,
    },
    /// A running call failed and will be retried.
    BackOff {
        call: CallIndex,
        error: Arc<str>,
        wait: Duration,
    },
    Retry {
        call: CallIndex,
    },
    Cancel {
        reason: Arc<str>,
        timed_out: bool,
    },
    CancelCall {
        call: CallIndex,
        reason: Arc<str>,
    },
}

/// Returns whether the run state needs the item.
pub(crate) fn is_for_run(item: &ReplyItem<'_>) -> bool {
    matches!(
        item,
        ReplyItem::CallStart(_) | ReplyItem::Call(_) | ReplyItem::MaybeReasoning { .. }
    )
}
