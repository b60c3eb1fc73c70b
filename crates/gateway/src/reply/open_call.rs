//! A call that the model is writing.

use plaincall_reply::{JsonStream, ToolCall};
use plaincall_syntax::Event;
use plaincall_tool::{Arguments, Limits, ToolSpec};

use crate::reply::holding_sink::HoldingSink;

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
    json: OpenJson,
    /// Text that has not been sent yet.
    delta: String,
}

impl Streamed {
    /// Creates a call of this tool; `None` if the call is invalid.
    pub(super) fn new(index: u64, tool: Option<&ToolSpec>) -> Self {
        Self {
            index,
            stream: tool.map(|tool| JsonStream::new(tool.clone(), Limits::for_running())),
            json: OpenJson::default(),
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
            self.json.follow(&self.delta);
            self.delta.push_str(self.json.invalid_end());
        }
        is_closed
    }

    pub(super) fn flush(&mut self, out: &mut HoldingSink) {
        if !self.delta.is_empty() {
            self.json.follow(&self.delta);
            out.arguments(self.index, &self.delta);
            self.delta.clear();
        }
    }
}

/// Tracks a JSON text that is written in pieces: whether an object or a list is complete, and how its end can be made unparsable.
/// Some clients close open brackets to show partial arguments; a mismatched bracket stops these too.
#[derive(Clone, Debug, Default)]
pub(super) struct OpenJson {
    /// The open brackets, outermost first.
    open: Vec<u8>,
    is_in_string: bool,
    is_escaped: bool,
    pub(super) is_complete: bool,
}

impl OpenJson {
    pub(super) fn follow(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match (self.is_in_string, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (true, b'"') => self.is_in_string = false,
                (false, b'"') => self.is_in_string = true,
                (false, b'{' | b'[') => self.open.push(byte),
                (false, b'}' | b']') => {
                    self.open.pop();
                    self.is_complete |= self.open.is_empty();
                }
                _ => {}
            }
        }
    }

    /// Returns whether an object, a list or a string is open.
    pub(super) fn is_open(&self) -> bool {
        self.is_in_string || !self.open.is_empty()
    }

    pub(super) fn invalid_end(&self) -> &'static str {
        let is_list = self.open.last() == Some(&b'[');
        match (self.is_in_string, is_list) {
            _ if self.open.is_empty() => "{]",
            (true, true) if self.is_escaped => "\\\"}",
            (true, false) if self.is_escaped => "\\\"]",
            (true, true) => "\"}",
            (true, false) => "\"]",
            (false, true) => "}",
            (false, false) => "]",
        }
    }
}
