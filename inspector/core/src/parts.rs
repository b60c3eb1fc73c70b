//! The parts of a text: every byte with its interpretation.

use plaincall_syntax::{Event, EventKind, Slot, Syntax};
use serde::Serialize;

/// The interpretation of some bytes.
#[derive(Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Kind {
    Text,
    Reasoning,
    Header,
    Argument,
    Value,
    LineEnd,
    End,
    Ignored,
}

/// Adjacent bytes with one interpretation. Positions are bytes of the text.
#[derive(Serialize)]
pub(crate) struct Part {
    kind: Kind,
    start: usize,
    pub(crate) end: usize,
    /// The index of the call.
    #[serde(skip_serializing_if = "Option::is_none")]
    call: Option<usize>,
    /// The argument that the bytes belong to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pointer: Option<String>,
}

/// The parts of the events so far.
#[derive(Default)]
pub(crate) struct Parts {
    pub(crate) list: Vec<Part>,
    pub(crate) calls: usize,
    /// The syntax of the first call.
    pub(crate) syntax: Option<Syntax>,
    is_in_call: bool,
    pointer: Option<String>,
}

impl Parts {
    pub(crate) fn push(&mut self, event: &Event<'_>) {
        let kind = match &event.kind {
            EventKind::Diagnostic(_) => return,
            EventKind::Text(_) => Kind::Text,
            EventKind::Reasoning(_) => Kind::Reasoning,
            EventKind::CallStart(_) => Kind::Header,
            EventKind::ValueStart(_) => Kind::Argument,
            EventKind::ValueDelta(_) => Kind::Value,
            EventKind::ValueEnd => Kind::LineEnd,
            EventKind::CallEnd(_) => Kind::End,
            _ => Kind::Ignored,
        };
        match &event.kind {
            EventKind::CallStart(header) => {
                self.syntax.get_or_insert(header.syntax());
                self.calls += 1;
                self.is_in_call = true;
            }
            EventKind::ValueStart(Slot::Argument(pointer)) => {
                self.pointer = Some(pointer.as_str().to_owned());
            }
            _ => {}
        }
        let call = self.calls.checked_sub(1).filter(|_| self.is_in_call);
        let is_of_argument = matches!(kind, Kind::Argument | Kind::Value | Kind::LineEnd);
        let pointer = self.pointer.clone().filter(|_| is_of_argument);
        match &event.kind {
            EventKind::CallEnd(_) => {
                self.is_in_call = false;
                self.pointer = None;
            }
            EventKind::ValueEnd => self.pointer = None,
            _ => {}
        }
        if event.span.start == event.span.end {
            return;
        }
        match self.list.last_mut() {
            Some(last) if last.kind == kind && last.call == call && kind != Kind::Argument => {
                last.end = event.span.end;
            }
            _ => self.list.push(Part {
                kind,
                start: event.span.start,
                end: event.span.end,
                call,
                pointer,
            }),
        }
    }
}
