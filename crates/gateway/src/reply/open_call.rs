//! A call that the model is writing.

use plaincall_call::{Arguments, Limits, ToolCall, ToolSpec, json::JsonStream};
use plaincall_syntax::Event;

use crate::api::encoder::ResponseSink;

/// The handling of a call that the model is writing.
#[derive(Debug)]
pub(super) enum Opened {
    /// The call is sent while it is written.
    Streamed(Box<Streamed>),
    /// The call is sent once it is complete and valid.
    Held,
    /// The call is not sent.
    Disallowed,
}

/// A call that is sent while it is written.
#[derive(Debug)]
pub(super) struct Streamed {
    index: u64,
    /// Writes the JSON text of the arguments; `None` if the call is known to be invalid.
    stream: Option<JsonStream<ToolSpec>>,
    invalidator: Invalidator,
    /// Text that has not been sent yet.
    delta: String,
}

impl Streamed {
    /// Creates a call of this tool; `None` if the call is invalid.
    pub(super) fn new(index: u64, tool: Option<&ToolSpec>) -> Self {
        Self {
            index,
            stream: tool.map(|tool| JsonStream::new(tool.clone(), Limits::for_running())),
            invalidator: Invalidator::default(),
            delta: String::new(),
        }
    }

    /// Handles the parser's next event.
    pub(super) fn push(&mut self, event: &Event<'_>) {
        if let Some(stream) = &mut self.stream {
            stream.push(event, &mut self.delta);
        }
    }

    /// Ends the JSON text of the arguments. If the call is invalid (`arguments` is `None`), makes the text unparsable. Returns
    /// whether the text is valid.
    pub(super) fn close(&mut self, call: &ToolCall, arguments: Option<&Arguments>) -> bool {
        let is_closed = match (&mut self.stream, arguments) {
            (Some(stream), Some(arguments)) => {
                stream.close(call, arguments, &mut self.delta).is_ok()
            }
            _ => false,
        };
        if !is_closed {
            self.invalidator.follow(&self.delta);
            self.delta.push_str(self.invalidator.end());
        }
        is_closed
    }

    pub(super) fn flush(&mut self, out: &mut dyn ResponseSink) {
        if !self.delta.is_empty() {
            self.invalidator.follow(&self.delta);
            out.arguments(self.index, &self.delta);
            self.delta.clear();
        }
    }
}

/// Tracks a JSON text that is written in pieces, so that its end can be made unparsable. Some clients close open brackets to show
/// partial arguments; a mismatched bracket stops these too.
#[derive(Clone, Debug, Default)]
struct Invalidator {
    /// The open brackets, outermost first.
    open: Vec<u8>,
    is_in_string: bool,
    is_escaped: bool,
}

impl Invalidator {
    fn follow(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match (self.is_in_string, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (true, b'"') => self.is_in_string = false,
                (false, b'"') => self.is_in_string = true,
                (false, b'{' | b'[') => self.open.push(byte),
                (false, b'}' | b']') => {
                    self.open.pop();
                }
                _ => {}
            }
        }
    }

    fn end(&self) -> &'static str {
        match (self.open.last(), self.is_in_string) {
            (None, _) => "{]",
            (Some(b'['), true) => "\"}",
            (Some(_), true) => "\"]",
            (Some(b'['), false) => "}",
            (Some(_), false) => "]",
        }
    }
}
