//! What happens outside of the run state.

use std::sync::Arc;
use std::time::Duration;

use plaincall_call::{Arguments, ReplyItem, Stop, Untrusted};
use plaincall_plan::CallIndex;

use crate::call_arguments::SubmittedArguments;
use crate::event::{AdmittedBy, Author};
use crate::source::Source;
use crate::work::Ended;

#[derive(Debug)]
pub(crate) enum Input {
    /// The model is given a text from outside.
    Untrusted {
        name: Arc<str>,
        /// What of it counts.
        text: Option<Arc<Untrusted<'static>>>,
    },
    Message {
        author: Author,
        text: Arc<str>,
    },
    /// A turn was opened, with a limit of its own for its calls.
    Open {
        calls: Option<u32>,
    },
    /// A piece of the reply, and what it says.
    Text {
        /// `None` if nobody wants to know.
        source: Option<Source>,
        read: Vec<ReplyItem<'static>>,
    },
    /// The reply is over, and what its end says.
    Over {
        stop: Stop,
        read: Vec<ReplyItem<'static>>,
    },
    /// A call was submitted, perhaps by the tool of another one.
    Submit {
        name: Arc<str>,
        arguments: Arc<SubmittedArguments>,
        parent: Option<u32>,
    },
    Admit {
        call: CallIndex,
        by: AdmittedBy,
        always: bool,
        /// The arguments it runs with, if they are not those that were written.
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
    /// A call that was started has failed and is to be tried again.
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

/// Whether the run does something with what was read.
pub(crate) fn is_for_run(item: &ReplyItem<'_>) -> bool {
    matches!(
        item,
        ReplyItem::CallStart(_) | ReplyItem::Call { .. } | ReplyItem::MaybeReasoning { .. }
    )
}
