//! Holds back the last call, because its id may still get a mark.

use plaincall_wire::openai::{ChatCompletionChunk, ReasoningField, ToolCall, Usage};

use crate::api::encoder::ResponseSink;

/// The longest text that is held back behind a call, in bytes. A longer one is sent, and the call before it gets no mark.
const MAX_TEXT: usize = 4 << 10;

/// Passes a reply on. If it holds calls, a call and the texts behind it are sent when the next call begins or the reply ends.
#[derive(Debug)]
pub(super) struct HeldCall<O> {
    pub(super) out: O,
    holds_calls: bool,
    held: Option<Held>,
}

#[derive(Debug)]
struct Held {
    index: u64,
    id: String,
    name: String,
    arguments: String,
    /// The texts behind the call, which are not empty.
    texts: Vec<(Kind, String)>,
    length: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Content,
    Reasoning(ReasoningField),
    Refusal,
}

impl<O: ResponseSink> HeldCall<O> {
    pub(super) fn new(out: O, holds_calls: bool) -> Self {
        Self {
            out,
            holds_calls,
            held: None,
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
        for (kind, text) in held.texts {
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
        let Some(held) = &mut self.held else {
            return self.send(kind, text);
        };
        held.length += text.len();
        if held.length > MAX_TEXT {
            self.release();
            return self.send(kind, text);
        }
        match held.texts.last_mut() {
            Some((last, held)) if *last == kind => held.push_str(text),
            _ => held.texts.push((kind, text.to_owned())),
        }
    }
}

impl<O: ResponseSink> ResponseSink for HeldCall<O> {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        self.out.begin(chunk);
    }

    fn carry(&mut self, chunk: &ChatCompletionChunk<'_>) {
        self.out.carry(chunk);
    }

    fn content(&mut self, text: &str) {
        self.text(Kind::Content, text);
    }

    fn reasoning(&mut self, name: ReasoningField, text: &str) {
        self.text(Kind::Reasoning(name), text);
    }

    fn refusal(&mut self, text: &str) {
        self.text(Kind::Refusal, text);
    }

    fn call(&mut self, index: u64, id: &str, name: &str) {
        self.release();
        if !self.holds_calls {
            return self.out.call(index, id, name);
        }
        self.held = Some(Held {
            index,
            id: id.to_owned(),
            name: name.to_owned(),
            arguments: String::new(),
            texts: Vec::new(),
            length: 0,
        });
    }

    fn arguments(&mut self, index: u64, piece: &str) {
        match &mut self.held {
            Some(held) => held.arguments.push_str(piece),
            None => self.out.arguments(index, piece),
        }
    }

    fn native_call(&mut self, index: u64, is_first: bool, piece: &ToolCall<'_>) {
        self.out.native_call(index, is_first, piece);
    }

    fn can_interleave(&self) -> bool {
        self.out.can_interleave()
    }

    fn finish(&mut self, reason: &str) {
        self.release();
        self.out.finish(reason);
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        self.out.usage(usage);
    }
}
