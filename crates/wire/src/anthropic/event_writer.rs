//! Writes the events of a streamed response without intermediate values.

use super::error::ErrorBody;
use super::response::{MessageResponse, Usage};
use crate::json::Json;
use crate::sse::encode_event;
use crate::{ToJson, write, write_to};

/// Writes the events of one streamed response to a buffer. It opens and closes blocks as their content requires.
///
/// The caller ensures the order: [`start`](Self::start) first, [`end`](Self::end) last.
///
/// ```
/// use plaincall_wire::anthropic::{EventWriter, Usage};
///
/// let mut writer = EventWriter::default();
/// let mut out = Vec::new();
/// writer.text("Hi", &mut out);
/// writer.tool_use("toolu_1", "now", &mut out);
/// writer.input_json("{}", &mut out);
/// writer.close(&mut out);
/// assert_eq!(
///     String::from_utf8(out)?,
///     concat!(
///         "event: content_block_start\n",
///         r#"data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#, "\n\n",
///         "event: content_block_delta\n",
///         r#"data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#, "\n\n",
///         "event: content_block_stop\n",
///         r#"data: {"type":"content_block_stop","index":0}"#, "\n\n",
///         "event: content_block_start\n",
///         r#"data: {"type":"content_block_start","index":1,"content_block":"#,
///         r#"{"type":"tool_use","id":"toolu_1","name":"now","input":{}}}"#, "\n\n",
///         "event: content_block_delta\n",
///         r#"data: {"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{}"}}"#, "\n\n",
///         "event: content_block_stop\n",
///         r#"data: {"type":"content_block_stop","index":1}"#, "\n\n",
///     )
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct EventWriter {
    /// The index of the open block, or of the next one.
    index: u64,
    open: Option<Block>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Block {
    Text,
    Thinking,
    ToolUse,
}

impl EventWriter {
    /// Writes the first event, with the id of the response and the model.
    pub fn start(&mut self, id: &str, model: &str, out: &mut Vec<u8>) {
        let usage = Usage {
            input_tokens: Some(0),
            output_tokens: Some(0),
            ..Usage::default()
        };
        let mut message = MessageResponse::new(id, model, Vec::new(), usage);
        message.unknown.set("stop_reason", Json::default());
        begin("message_start", out);
        out.extend_from_slice(b",\"message\":");
        write_to(&message, out);
        end(out);
    }

    /// Writes a piece of text.
    pub fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        self.open(Block::Text, r#"{"type":"text","text":""}"#, out);
        self.delta(r#"{"type":"text_delta","text":"#, text, out);
    }

    /// Writes a piece of thinking.
    pub fn thinking(&mut self, thinking: &str, out: &mut Vec<u8>) {
        let block = r#"{"type":"thinking","thinking":"","signature":""}"#;
        self.open(Block::Thinking, block, out);
        self.delta(r#"{"type":"thinking_delta","thinking":"#, thinking, out);
    }

    /// Begins a call.
    pub fn tool_use(&mut self, id: &str, name: &str, out: &mut Vec<u8>) {
        self.close(out);
        let (id, name) = (write(id), write(name));
        let block = format!(r#"{{"type":"tool_use","id":{id},"name":{name},"input":{{}}}}"#);
        self.open(Block::ToolUse, &block, out);
    }

    /// Writes a piece of the JSON text of the open call's input.
    pub fn input_json(&mut self, piece: &str, out: &mut Vec<u8>) {
        if self.open == Some(Block::ToolUse) {
            let delta = r#"{"type":"input_json_delta","partial_json":"#;
            self.delta(delta, piece, out);
        }
    }

    /// Closes the open block.
    pub fn close(&mut self, out: &mut Vec<u8>) {
        let Some(block) = self.open.take() else {
            return;
        };
        if block == Block::Thinking {
            self.delta(r#"{"type":"signature_delta","signature":"#, "", out);
        }
        self.begin("content_block_stop", out);
        end(out);
        self.index += 1;
    }

    /// Writes the last events: the stop reason, the stop sequence and the usage.
    pub fn end(
        &mut self,
        stop_reason: &str,
        stop_sequence: Option<&str>,
        usage: &Usage<'_>,
        out: &mut Vec<u8>,
    ) {
        self.close(out);
        begin("message_delta", out);
        out.extend_from_slice(b",\"delta\":{\"stop_reason\":");
        write_to(stop_reason, out);
        out.extend_from_slice(b",\"stop_sequence\":");
        write_to(&stop_sequence, out);
        out.extend_from_slice(b"},\"usage\":");
        write_to(usage, out);
        end(out);
        begin("message_stop", out);
        end(out);
    }

    /// Opens a block unless one of this kind is open.
    fn open(&mut self, kind: Block, block: &str, out: &mut Vec<u8>) {
        if self.open == Some(kind) {
            return;
        }
        self.close(out);
        self.begin("content_block_start", out);
        out.extend_from_slice(b",\"content_block\":");
        out.extend_from_slice(block.as_bytes());
        end(out);
        self.open = Some(kind);
    }

    /// Writes a delta of the open block.
    fn delta(&self, delta: &str, text: &str, out: &mut Vec<u8>) {
        self.begin("content_block_delta", out);
        out.extend_from_slice(b",\"delta\":");
        out.extend_from_slice(delta.as_bytes());
        text.write_json(out);
        out.push(b'}');
        end(out);
    }

    /// Begins an event about the current block.
    fn begin(&self, name: &str, out: &mut Vec<u8>) {
        begin(name, out);
        out.extend_from_slice(b",\"index\":");
        self.index.write_json(out);
    }
}

/// Appends an event without content, which keeps the connection alive.
pub fn ping_event(out: &mut Vec<u8>) {
    begin("ping", out);
    end(out);
}

/// Appends the event that ends a stream with an error.
pub fn error_event(error: &ErrorBody<'_>, out: &mut Vec<u8>) {
    encode_event("error", &write(error), out);
}

fn begin(name: &str, out: &mut Vec<u8>) {
    // Most events are shorter, so they are not copied while they grow.
    out.reserve(256);
    for part in ["event: ", name, "\ndata: {\"type\":\"", name, "\""] {
        out.extend_from_slice(part.as_bytes());
    }
}

fn end(out: &mut Vec<u8>) {
    out.extend_from_slice(b"}\n\n");
}
