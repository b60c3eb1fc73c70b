//! A call that is being written.

use plaincall_call::{Arguments, Limits, ToolCall, ToolSpec, json::JsonStream};
use plaincall_syntax::Event;

use crate::sink::ResponseSink;

/// What becomes of a call that is being written.
#[derive(Debug)]
pub(super) enum Opened {
    /// It is sent while it is written.
    Streamed(Box<Streamed>),
    /// It is sent when it has ended and is valid.
    Held,
    /// It is not sent.
    Unwanted,
}

/// A call that is sent while it is written.
#[derive(Debug)]
pub(super) struct Streamed {
    index: u64,
    /// The JSON text of the arguments; `None` if the call is known to be invalid.
    stream: Option<JsonStream<ToolSpec>>,
    invalidator: Invalidator,
    /// What has not left yet.
    delta: String,
}

impl Streamed {
    /// A call of this tool; of none, if it is invalid.
    pub(super) fn new(index: u64, tool: Option<&ToolSpec>) -> Self {
        Self {
            index,
            stream: tool.map(|tool| JsonStream::new(tool.clone(), Limits::for_running())),
            invalidator: Invalidator::default(),
            delta: String::new(),
        }
    }

    /// Takes the parser's next event.
    pub(super) fn push(&mut self, event: &Event<'_>) {
        if let Some(stream) = &mut self.stream {
            stream.push(event, &mut self.delta);
        }
    }

    /// Ends the text of the arguments: as it should end if the call is valid, which is returned, else so that nobody
    /// can read it. Only a valid call has arguments.
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

/// Follows a JSON text that is written piece by piece, so that it can be made unreadable at its end. Some clients close
/// what is open, to show it early; a bracket that closes what is not open stops these too.
#[derive(Clone, Debug, Default)]
struct Invalidator {
    /// What is open, `{` or `[`, from the outside in.
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
