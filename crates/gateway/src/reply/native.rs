//! Replies of a model server that has tools itself (`spec/gateway.md` 11).

use std::sync::Arc;

use plaincall_reply::rescue::{RescueReader, Rescued, RescuedCall};

use crate::error::GatewayError;
use crate::reply::Reply;
use crate::reply::native_calls::NativeCalls;
use crate::reply::plan::ReplyPlan;
use crate::reply::repair_reason::{NOT_A_CALL, SURPLUS};
use crate::tools::Choice;

/// The state of a reply in native mode.
#[derive(Debug)]
pub(super) struct Native {
    /// Finds calls in the text; `None` if none can be called.
    reader: Option<RescueReader<Arc<ReplyPlan>>>,
    /// White space that is sent before other text.
    blank: String,
    /// Whether white space is held: no text has been sent since the beginning or since a rescued call.
    is_at_edge: bool,
    /// Calls that arrived as text, and the white space after them, until something else follows.
    rescued: Vec<Rescued>,
    /// The reason why valid calls that arrived as text stay text, if there are any. An echo counts more.
    refused: Option<Refused>,
    pub(super) calls: NativeCalls,
}

/// The beginning of calls of Mistral.
const MISTRAL: &str = "[TOOL_CALLS]";
/// The maximum length of held white space, in bytes.
const MAX_BLANK: usize = 1024;

/// The reason why valid calls stay text.
#[derive(Clone, Copy, Debug)]
enum Refused {
    /// Only one call is allowed.
    Surplus,
    /// The conversation contains such a call.
    Echo,
}

impl Native {
    pub(super) fn new(plan: &Arc<ReplyPlan>) -> Self {
        let reader = plan.compiled.rescue.as_ref();
        let reader = reader.filter(|_| plan.choice != Choice::None);
        let with_tools = |reader: &RescueReader<_>| {
            let reader = reader.with_tools(Arc::clone(plan));
            reader.with_formats(&plan.formats)
        };
        Self {
            reader: reader.map(with_tools),
            blank: String::new(),
            is_at_edge: true,
            rescued: Vec::new(),
            refused: None,
            calls: NativeCalls::default(),
        }
    }

    pub(super) fn is_holding(&self) -> bool {
        self.calls.is_holding()
            || !self.rescued.is_empty()
            || self.reader.as_ref().is_some_and(RescueReader::is_holding)
    }

    /// Returns the message for the model if the text resembles a call that the model may be asked to write again.
    pub(super) fn near_miss(&self) -> Option<&'static str> {
        let reader = self.reader.as_ref();
        match self.refused {
            None => reader
                .is_some_and(RescueReader::has_near_miss)
                .then_some(NOT_A_CALL),
            Some(Refused::Surplus) => Some(SURPLUS),
            Some(Refused::Echo) => None,
        }
    }
}

impl Reply {
    /// Reads a piece of the text.
    pub(super) fn native_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.end_complete_call();
        }
        let Some(reader) = &mut self.native.reader else {
            if !text.is_empty() {
                self.send_text(text);
            }
            return;
        };
        let found = reader.feed(text);
        self.hold_rescued(found);
    }

    /// Ends the text before something else, or at the end of the reply. A call that ends with the text counts only if the text
    /// is complete.
    pub(super) fn end_native_text(&mut self, is_complete: bool) {
        self.end_native_text_before(None, is_complete);
    }

    /// Ends the text before a call of the model server with this name, if there is one.
    pub(super) fn end_native_text_before(&mut self, call: Option<&str>, is_complete: bool) {
        if is_complete {
            self.end_complete_call();
        }
        if let Some(reader) = &mut self.native.reader {
            let found = reader.flush(is_complete);
            self.hold_rescued(found);
        }
        self.send_rescued(call);
        if self.counts.rescued_calls == 0 {
            self.send_blank();
        }
    }

    /// Holds calls and the white space after them; other text sends them.
    fn hold_rescued(&mut self, found: Vec<Rescued>) {
        for one in found {
            if let Rescued::Reasoning(thought) = &one {
                self.send_rescued(None);
                self.send_marked_reasoning(thought);
                continue;
            }
            if self.lacks_call() {
                self.record(one.source());
            }
            let is_held = match &one {
                Rescued::Text(text) => text.trim().is_empty() && !self.native.rescued.is_empty(),
                _ => true,
            };
            if is_held {
                self.native.rescued.push(one);
                continue;
            }
            self.send_rescued(None);
            self.send_native_text(one.source());
        }
    }

    /// Sends reasoning that is in the text, with its markers, except that of a repair round.
    fn send_marked_reasoning(&mut self, thought: &str) {
        if self.repairs == 0 {
            self.has_reasoning = true;
            self.send_blank();
            self.native.is_at_edge = false;
            self.out.content(thought);
        }
    }

    /// Sends the held calls as calls, as far as they may be. If the model server itself returns a call of a tool in them, all
    /// are text.
    fn send_rescued(&mut self, returned: Option<&str>) {
        let offer = &self.plan.offer;
        let is_returned = |one: &Rescued| match one {
            Rescued::Calls { calls, .. } => calls
                .iter()
                .any(|call| returned == Some(offer.original(&call.name))),
            _ => false,
        };
        let are_texts = self.native.rescued.iter().any(is_returned);
        for one in std::mem::take(&mut self.native.rescued) {
            self.ids.is_short = one.source().trim_start().starts_with(MISTRAL);
            match one {
                Rescued::Calls { calls, .. } if !are_texts && self.is_rescue(&calls) => {
                    // The white space around calls is removed with them.
                    self.native.blank.clear();
                    self.native.is_at_edge = true;
                    if self.plan.streams_arguments() {
                        self.end_native_calls(false);
                    }
                    for call in calls {
                        self.send_call(&call.name, &call.arguments);
                        self.counts.calls += 1;
                        self.counts.rescued_calls += 1;
                    }
                }
                other => self.send_native_text(other.source()),
            }
        }
    }

    /// Returns whether calls that arrived as text are sent as calls: if none is a copy of a text in the conversation or of a call
    /// of the model server, and there may be so many.
    fn is_rescue(&mut self, calls: &[RescuedCall]) -> bool {
        let has_echo = self.plan.with_guard(|guard| {
            let mut calls = calls.iter();
            calls.any(|call| {
                guard
                    .echo_of_arguments(&call.name, &call.arguments)
                    .is_some()
            })
        });
        if has_echo {
            self.native.refused = Some(Refused::Echo);
            return false;
        }
        let native = &self.native.calls;
        if calls.iter().any(|call| {
            let name = self.plan.offer.original(&call.name);
            native.has(name, &call.arguments.to_value())
        }) {
            return false;
        }
        let others = self.sent + native.pending() as u64;
        let is_surplus = self.plan.one_call && others + calls.len() as u64 > 1;
        if is_surplus {
            self.native.refused.get_or_insert(Refused::Surplus);
        }
        !is_surplus
    }

    fn send_native_text(&mut self, text: &str) {
        if !self.native.is_at_edge {
            self.send_text(text);
            return;
        }
        let native = &mut self.native;
        native.blank.push_str(text);
        if native.blank.len() > MAX_BLANK || !native.blank.trim().is_empty() {
            self.send_blank();
        }
    }

    fn send_blank(&mut self) {
        let blank = std::mem::take(&mut self.native.blank);
        if !blank.is_empty() {
            self.native.is_at_edge = false;
            self.send_text(&blank);
        }
    }
}

/// The error for a native call of the model server: its parser removed the call from the text.
pub(super) fn unexpected_call() -> GatewayError {
    GatewayError::upstream(
        "the model server returned a native tool call although it was offered no tools: turn off its tool parsing",
    )
}
