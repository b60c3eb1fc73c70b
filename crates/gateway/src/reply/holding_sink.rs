//! A sink that holds back the last call, because its id may still get a mark, or the texts inside a call.

use plaincall_wire::openai::{ReasoningField, ToolCall};

use crate::api::encoder::Encoder;

/// The longest text that is held back after a call, in bytes. A longer one is sent, and the call before it gets no mark.
const MAX_TEXT: usize = 4 << 10;

/// The longest texts that wait for the end of a call, in bytes. The rest is dropped.
const MAX_WAITING: usize = 1 << 20;

/// Passes a reply on. If it holds calls, a call and the texts after it are sent when the next call begins or the reply ends.
/// Otherwise, texts that arrive inside a call wait for its end if the content of the API comes one block after another.
#[derive(Debug)]
pub(super) struct HoldingSink {
    pub(super) out: Box<dyn Encoder + Send>,
    holds_calls: bool,
    held: Option<Held>,
    /// The texts that have arrived inside the open call.
    waiting: Option<Texts>,
}

#[derive(Debug)]
struct Held {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    /// The texts after the call, which are not empty.
    texts: Texts,
}

#[derive(Debug, Default)]
struct Texts {
    list: Vec<(Kind, String)>,
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Content,
    Reasoning(ReasoningField),
    Refusal,
}

impl Texts {
    /// Adds a text, unless the sum would exceed this limit.
    fn add(&mut self, kind: Kind, text: &str, most: usize) -> bool {
        if self.length + text.len() > most {
            return false;
        }
        self.length += text.len();
        match self.list.last_mut() {
            Some((last, before)) if *last == kind => before.push_str(text),
            _ => self.list.push((kind, text.to_owned())),
        }
        true
    }
}

impl HoldingSink {
    pub(super) fn new(out: Box<dyn Encoder + Send>, holds_calls: bool) -> Self {
        Self {
            out,
            holds_calls,
            held: None,
            waiting: None,
        }
    }

    /// Returns whether a call is held back.
    pub(super) fn is_holding(&self) -> bool {
        self.held.is_some()
    }

    /// Changes the id of the call that is held back.
    pub(super) fn mark(&mut self, mark: impl FnOnce(&str) -> String) {
        if let Some(held) = &mut self.held {
            held.id = mark(&held.id);
        }
    }

    /// Sends what is held back.
    pub(super) fn release(&mut self) {
        let Some(held) = self.held.take() else {
            return;
        };
        self.out.call(held.index, &held.id, &held.name);
        self.out.arguments(held.index, &held.arguments);
        self.send_all(held.texts);
    }

    /// The arguments of the call that began last are complete.
    pub(super) fn end_call(&mut self) {
        if let Some(waiting) = self.waiting.take() {
            self.send_all(waiting);
        }
    }

    fn send_all(&mut self, texts: Texts) {
        for (kind, text) in texts.list {
            self.send(kind, &text);
        }
    }

    fn send(&mut self, kind: Kind, text: &str) {
        match kind {
            Kind::Content => self.out.content(text),
            Kind::Reasoning(name) => self.out.reasoning(name, text),
            Kind::Refusal => self.out.refusal(text),
        }
    }

    fn text(&mut self, kind: Kind, text: &str) {
        if let Some(waiting) = &mut self.waiting {
            waiting.add(kind, text, MAX_WAITING);
            return;
        }
        if let Some(held) = &mut self.held {
            if held.texts.add(kind, text, MAX_TEXT) {
                return;
            }
            self.release();
        }
        self.send(kind, text);
    }

    pub(super) fn content(&mut self, text: &str) {
        self.text(Kind::Content, text);
    }

    pub(super) fn reasoning(&mut self, name: ReasoningField, text: &str) {
        self.text(Kind::Reasoning(name), text);
    }

    pub(super) fn refusal(&mut self, text: &str) {
        self.text(Kind::Refusal, text);
    }

    pub(super) fn call(&mut self, index: u64, id: &str, name: &str) {
        self.release();
        if !self.holds_calls {
            self.waiting = (!self.out.can_interleave()).then(Texts::default);
            return self.out.call(index, id, name);
        }
        self.held = Some(Held {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            texts: Texts::default(),
        });
    }

    pub(super) fn arguments(&mut self, index: u64, piece: &str) {
        match &mut self.held {
            Some(held) => held.arguments.push_str(piece),
            None => self.out.arguments(index, piece),
        }
    }

    pub(super) fn native_call(&mut self, index: u64, is_first: bool, piece: &ToolCall<'_>) {
        if is_first {
            self.waiting = (!self.out.can_interleave()).then(Texts::default);
        }
        self.out.native_call(index, is_first, piece);
    }

    pub(super) fn finish(&mut self, reason: &str) {
        self.release();
        self.out.finish(reason);
    }
}
