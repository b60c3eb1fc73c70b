//! Calls in the model's text.

use std::sync::Arc;

use plaincall_reply::{Bound, CallError, CallHeader, DecidedCall, ReplyItem, Stop, ToolCall};
use plaincall_syntax::{Code, Event, EventKind};

use crate::invalid_call_mark::InvalidCallMark;
use crate::reply::Reply;
use crate::reply::open_call::{Opened, Streamed};
use crate::reply::repair_reason::RepairReason;
use crate::tools::Choice;
use crate::unreadable_call;

/// The longest reply that can be repaired, in bytes: more than models write.
const MAX_KEPT: usize = 1 << 20;

/// How much of a reply is read before looking whether anyone still waits for it, in bytes.
const PIECE: usize = 4 << 10;

/// The reason to end a reply before a call.
#[derive(Debug)]
pub(super) enum Before {
    /// The call depends on another call of the same reply.
    Dependent,
    /// A second call, although only one is allowed.
    Surplus,
    /// The call is invalid.
    Invalid(Arc<ToolCall>, CallError),
}

impl Reply {
    /// Parses a piece of the model's text. Returns the reason if the reply ends before a call.
    pub(super) fn read_calls(&mut self, text: &str) -> Option<Before> {
        let mut items = Vec::new();
        for piece in text.as_bytes().chunks(PIECE) {
            if self.fails_without_client() {
                return None;
            }
            items.extend(self.reader.feed(piece));
        }
        if self.is_whole {
            // Nothing of it has been sent yet.
            items.extend(self.reader.end_line());
            ReplyItem::reject_reasoning(&mut items);
        }
        for item in items {
            if let Some(before) = self.take(item) {
                return Some(before);
            }
        }
        self.flush();
        None
    }

    pub(super) fn take(&mut self, item: ReplyItem<'_>) -> Option<Before> {
        match item {
            ReplyItem::CallStart(started) => return self.begin_call(&started),
            ReplyItem::Event(event) => self.event(&event),
            ReplyItem::Call(read) => return self.end_call(&read),
            _ => {}
        }
        None
    }

    fn event(&mut self, event: &Event<'_>) {
        let is_outside = self.round.open.is_none();
        // Reasoning markers, possibly without text between them.
        let is_marker =
            is_outside && matches!(&event.kind, EventKind::Ignored(ignored) if **ignored != *"\\");
        let is_reasoning = is_marker || matches!(&event.kind, EventKind::Reasoning(_));
        if is_marker {
            self.round.text.gap();
        }
        if !is_reasoning && self.lacks_call() {
            self.record(event.source());
        }
        match &event.kind {
            EventKind::Text(text) => match &mut self.round.header {
                Some(header) => header.push_str(text),
                None => self.round.text.add(text),
            },
            EventKind::Reasoning(thought) => self.think(thought),
            EventKind::Diagnostic(diagnostic) if is_outside => {
                self.stray(diagnostic.code, diagnostic.span.len());
            }
            _ => {}
        }
        if let Some(Opened::Streamed(call)) = &mut self.round.open {
            call.push(event);
        }
    }

    /// Handles a marker that is text. It stays, unless it shows the key, or repeats the end of a call.
    fn stray(&mut self, code: Code, len: usize) {
        let text = &mut self.round.text;
        let is_keyed = self.plan.dialect().is_keyed();
        match code {
            Code::StrayReasoningOpen => {}
            Code::StrayReasoningClose => {
                // In code, it is a subject.
                let written = self.round.written.as_deref();
                let is_prose = written.is_some_and(|written| !written.contains('`'));
                self.counts.unmatched_reasoning |= u64::from(is_prose && self.repairs == 0);
            }
            Code::TruncatedHeader => {
                let marker = text.strike(len);
                self.round.header = Some(if is_keyed { String::new() } else { marker });
            }
            Code::StrayMarker | Code::NotAHeader | Code::HeaderTooLong => {
                let is_repeated = self.round.started > 0 && text.is_blank_before(len);
                if is_repeated || is_keyed {
                    text.strike(len);
                }
            }
            _ => return,
        }
        self.counts.stray_markers += 1;
    }

    /// Records the model's text without its reasoning.
    pub(super) fn record(&mut self, source: &str) {
        let Some(written) = &mut self.round.written else {
            return;
        };
        written.push_str(source);
        if written.len() > MAX_KEPT {
            self.round.written = None;
            if self.repairs == 0 {
                self.content = String::new();
            }
        }
    }

    fn begin_call(&mut self, started: &CallHeader) -> Option<Before> {
        self.end_text();
        self.round.text.call(&started.name);
        if self.plan.choice == Choice::None {
            self.counts.disallowed_calls += 1;
            self.round.open = Some(Opened::Disallowed);
            return None;
        }
        if self.plan.one_call && self.round.started > 0 {
            return Some(Before::Surplus);
        }
        let of_this_reply = |id: &String| self.round.given_ids.contains(id) && *id != started.id;
        if started.dependencies.iter().any(of_this_reply) {
            return Some(Before::Dependent);
        }
        self.round.given_ids.insert(started.id.clone());
        self.round.started += 1;
        if !self.plan.streams_arguments() {
            self.round.open = Some(Opened::Held);
            return None;
        }
        let index = self.begin_sent(&started.name);
        let allowed = self.plan.choice.allows(&started.name);
        let tool = self.plan.offer.get(&started.name).filter(|_| allowed);
        // Calls in the API cannot depend on other calls.
        let is_supported = started.dependencies.is_empty() && !started.is_duplicate;
        let call = Streamed::new(index, tool.filter(|_| is_supported));
        self.round.open = Some(Opened::Streamed(Box::new(call)));
        None
    }

    fn end_call(&mut self, read: &DecidedCall) -> Option<Before> {
        let call = &read.call;
        let is_copied = |bound: &Bound| self.plan.examples.is_copied(&call.name, &bound.arguments);
        let bound = match read.bound() {
            Ok(bound) if is_copied(&bound) => Err(CallError::CopiedExample),
            bound => bound,
        };
        self.round.text.edge();
        let is_truncated = !call.is_closed() && self.round.stop.is_truncated();
        let is_valid = match (self.round.open.take()?, &bound) {
            (Opened::Disallowed, _) => return None,
            (Opened::Streamed(mut streamed), bound) => {
                let arguments = bound.as_ref().ok().map(|bound| &*bound.arguments);
                let is_closed = streamed.close(call, arguments);
                streamed.flush(&mut self.out);
                if let (false, Err(error)) = (is_closed, bound) {
                    let reason = unreadable_call::reason(call, error, &self.plan.compiled);
                    let id = &self.last_id;
                    let end = unreadable_call::ending(&self.plan.secret, id, &call.name, &reason);
                    self.out.arguments(self.sent - 1, &end);
                }
                self.out.end_call();
                is_closed
            }
            (Opened::Held, Ok(bound)) => {
                self.send_call(&call.name, &bound.arguments);
                self.content = String::new();
                true
            }
            (Opened::Held, Err(_)) => false,
        };
        match (is_valid, is_truncated) {
            (true, _) => self.counts.calls += 1,
            (false, true) => {
                self.counts.truncated_calls += 1;
                self.round.has_truncated_call = true;
            }
            (false, false) => self.counts.invalid_calls += 1,
        }
        // A truncated reply is not repaired; the call is dropped.
        let is_repaired = !self.plan.streams_arguments() && self.round.stop != Stop::Length;
        let error = bound.err().filter(|_| is_repaired)?;
        Some(Before::Invalid(Arc::clone(call), error))
    }

    /// Ends the reply before a call.
    pub(super) fn end_before(&mut self, before: Before) {
        match before {
            Before::Dependent => self.counts.dependent_calls += 1,
            Before::Surplus => self.counts.surplus_calls += 1,
            Before::Invalid(call, invalid) if self.sent == 0 => {
                let reason = RepairReason::of_call(&call, &invalid, &self.plan, self.repairs);
                return self.repair(reason);
            }
            Before::Invalid(call, invalid) => {
                if !self.plan.may_be_copied(&call) {
                    let mark = InvalidCallMark::of(&call, &invalid);
                    self.out.mark(|id| mark.mark(&self.plan.secret, id));
                }
            }
        }
        self.settle("stop");
    }
}

#[cfg(all(test, feature = "server"))]
mod tests {
    use std::sync::Arc;

    use plaincall_syntax::{Call, Dialect, render};
    use serde_json::json;

    use crate::adapter::{Adapter, Ask, Asked, Host};
    use crate::api::ClientApi;
    use crate::key::Secret;
    use crate::settings::ModelSettings;

    const REQUEST: &[u8] = br#"{"messages":[{"role":"user","content":"Add."}],"stream":true,"tools":[{"type":"function","function":{"name":"add"}}]}"#;

    fn asked() -> Box<Asked> {
        let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
        let host = Host::new(Secret::new("seed"), 0);
        match adapter.prepare(ClientApi::Chat, REQUEST, host).ask {
            Ask::Asked(asked) => asked,
            other => unreachable!("{other:?}"),
        }
    }

    /// A stream with so many calls in one chunk.
    fn stream(calls: usize) -> String {
        let call = Call::Block {
            name: "add",
            id: None,
            dependencies: Vec::new(),
            arguments: Vec::new(),
        };
        let text = render(&call, &Dialect::block())
            .unwrap_or_default()
            .repeat(calls);
        let chunk = json!({"choices": [{"delta": {"content": text}}]});
        format!("data: {chunk}\n\n")
    }

    #[test]
    fn no_call_is_read_for_a_client_that_has_disconnected() {
        let mut waited_for = asked();
        let client: Arc<()> = waited_for.client();
        waited_for.feed(stream(1000).as_bytes());
        assert_eq!(waited_for.counts().calls, 1000);
        drop(client);
        waited_for.feed(stream(1000).as_bytes());
        assert_eq!(waited_for.counts().calls, 1000);
    }
}
