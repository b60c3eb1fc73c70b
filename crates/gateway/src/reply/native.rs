//! Replies of a model server that has tools itself (`spec/gateway.md` 11).

use std::sync::Arc;

use plaincall_call::rescue::{RescueReader, Rescued, RescuedCall};
use plaincall_wire::openai::ToolCall;

use crate::api::encoder::ResponseSink;
use crate::error::GatewayError;
use crate::reply::plan::ReplyPlan;
use crate::reply::repair_reason::{NOT_A_CALL, SURPLUS};
use crate::reply::{Flow, Reply};
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
    /// The calls of the model server.
    calls: Vec<NativeCall>,
    /// Whether nothing has followed the last of them.
    is_open: bool,
    /// Whether the last of them has no arguments yet.
    lacks_arguments: bool,
}

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

/// A call of the model server that has begun.
#[derive(Debug)]
struct NativeCall {
    /// The model server's index of it.
    given: Option<u64>,
    id: String,
    /// The index that the client gets.
    index: u64,
}

impl Native {
    pub(super) fn new(plan: &Arc<ReplyPlan>) -> Self {
        let reader = plan.compiled.rescue.as_ref();
        let reader = reader.filter(|_| plan.choice != Choice::None);
        Self {
            reader: reader.map(|reader| reader.with_tools(Arc::clone(plan))),
            blank: String::new(),
            is_at_edge: true,
            rescued: Vec::new(),
            refused: None,
            calls: Vec::new(),
            is_open: false,
            lacks_arguments: false,
        }
    }

    pub(super) fn is_holding(&self) -> bool {
        !self.rescued.is_empty() || self.reader.as_ref().is_some_and(RescueReader::is_holding)
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

    /// Returns whether nothing has followed the last call of the model server.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// Returns the index of the call that a piece continues: the last one with its index. A piece without an index continues the
    /// last call.
    fn continued(&self, piece: &ToolCall<'_>) -> Option<u64> {
        let mut calls = self.calls.iter().rev();
        let same = calls.find(|call| call.given == piece.index);
        let last = self.calls.last().filter(|_| piece.index.is_none());
        let call = same.or(last).filter(|call| !call.is_ended_by(piece));
        call.map(|call| call.index)
    }
}

impl NativeCall {
    /// Returns whether a piece begins another call. Some servers give every call the same index, or none.
    fn is_ended_by(&self, piece: &ToolCall<'_>) -> bool {
        let id = piece.id.as_deref().unwrap_or_default();
        let has_other_id = !id.is_empty() && id != self.id;
        !piece.name().is_empty() && (has_other_id || (piece.index.is_none() && id.is_empty()))
    }
}

impl<O: ResponseSink> Reply<O> {
    /// Reads a piece of the text.
    pub(super) fn native_text(&mut self, text: &str) {
        if !text.is_empty() {
            self.end_native_call();
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
    fn end_native_text_before(&mut self, call: Option<&str>, is_complete: bool) {
        if is_complete {
            self.end_native_call();
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

    /// Ends the arguments of the last call. Some model servers write none; only chat completions may have none.
    fn end_native_call(&mut self) {
        self.native.is_open = false;
        if std::mem::take(&mut self.native.lacks_arguments) && !self.out.can_interleave() {
            self.out.arguments(self.sent - 1, "{}");
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
        let is_returned = |one: &Rescued| match one {
            Rescued::Calls { calls, .. } => calls.iter().any(|call| returned == Some(&*call.name)),
            _ => false,
        };
        let are_texts = self.native.rescued.iter().any(is_returned);
        for one in std::mem::take(&mut self.native.rescued) {
            match one {
                Rescued::Calls { calls, .. } if !are_texts && self.is_rescue(&calls) => {
                    // The white space around calls is removed with them.
                    self.native.blank.clear();
                    self.native.is_at_edge = true;
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

    /// Returns whether calls that arrived as text are sent as calls: if none is a copy of a text in the conversation, and
    /// there may be so many.
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
        let is_surplus = self.plan.one_call && self.sent + calls.len() as u64 > 1;
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

    /// Sends pieces of the model server's calls.
    pub(super) fn native_calls(&mut self, pieces: &[ToolCall<'_>]) -> Flow {
        for piece in pieces {
            // In an answer that is not streamed, each piece is a call.
            let continued = self.native.continued(piece).filter(|_| !self.is_whole);
            let Some(index) = continued else {
                self.begin_native_call(piece);
                continue;
            };
            if let Err(error) = self.continue_native_call(index, piece) {
                return self.fail(error);
            }
        }
        Flow::Continue
    }

    fn begin_native_call(&mut self, piece: &ToolCall<'_>) {
        self.end_native_text_before(Some(piece.name()), true);
        let index = self.sent;
        self.sent += 1;
        self.counts.native_calls += 1;
        let id = piece.id.as_deref().unwrap_or_default();
        let is_taken = self.native.calls.iter().any(|call| call.id == id);
        self.native.calls.push(NativeCall {
            given: piece.index,
            id: id.to_owned(),
            index,
        });
        self.native.is_open = true;
        self.native.lacks_arguments = piece.arguments().is_empty();
        let mut piece = piece.clone();
        if id.is_empty() || (is_taken && self.is_whole) {
            piece.id = Some(self.ids.next().into());
        }
        self.out.native_call(index, true, &piece);
    }

    fn continue_native_call(
        &mut self,
        index: u64,
        piece: &ToolCall<'_>,
    ) -> Result<(), GatewayError> {
        let has_none = piece.arguments().is_empty();
        let is_open = self.native.is_open && index + 1 == self.sent;
        if !is_open && !self.out.can_interleave() {
            let message = "the model server continued a call after other content";
            return has_none
                .then_some(())
                .ok_or_else(|| GatewayError::upstream(message));
        }
        self.native.lacks_arguments &= has_none;
        self.out.native_call(index, false, piece);
        Ok(())
    }
}

/// The error for a native call of the model server: its parser removed the call from the text.
pub(super) fn unexpected_call() -> GatewayError {
    GatewayError::upstream(
        "the model server returned a native tool call although it was offered no tools: turn off its tool parsing",
    )
}
