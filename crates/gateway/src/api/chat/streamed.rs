//! A reply as an event stream.

use plaincall_wire::openai::{
    ChatCompletionChunk, ChunkHead, ChunkWriter, ReasoningField, ToolCall, Usage, done_event,
    error_event,
};

use crate::api::encoder::{Encoder, MAX_NAME, keep_alive_comment};
use crate::error::GatewayError;

/// Writes a reply as events. [`take`](Self::take) returns the bytes.
#[derive(Debug)]
pub struct StreamedResponse {
    /// Used if the model server sends no id.
    id: String,
    created: u64,
    includes_usage: bool,
    /// Also keeps fields that arrive before the first chunk.
    writer: ChunkWriter,
    has_begun: bool,
    bytes: Vec<u8>,
}

impl StreamedResponse {
    /// Creates a stream, with or without the token usage. The id and the time (seconds since 1970) are used if the server sends
    /// none.
    pub fn new(id: impl Into<String>, created: u64, includes_usage: bool) -> Self {
        Self {
            id: id.into(),
            created,
            includes_usage,
            writer: ChunkWriter::new(&ChunkHead::default(), 0),
            has_begun: false,
            bytes: Vec::new(),
        }
    }

    /// Writes the first chunk with the id and names of this one.
    fn begin_as(&mut self, chunk: &ChatCompletionChunk<'_>) {
        let created = chunk.created.as_ref();
        let short = |name: &&str| name.len() <= MAX_NAME;
        let id = chunk.id.as_deref().filter(|id| !id.is_empty());
        self.writer.set_head(&ChunkHead {
            id: id.filter(short).unwrap_or(&self.id),
            created: created
                .and_then(|json| json.read().ok())
                .unwrap_or(self.created),
            model: chunk.model.as_deref().filter(short).unwrap_or_default(),
            service_tier: chunk.service_tier.as_deref().filter(short),
            system_fingerprint: chunk.system_fingerprint.as_deref().filter(short),
            includes_usage: self.includes_usage,
        });
        self.writer.role(&mut self.bytes);
        self.has_begun = true;
    }

    fn write(&mut self, write: impl FnOnce(&mut ChunkWriter, &mut Vec<u8>)) {
        if !self.has_begun {
            self.begin_as(&ChatCompletionChunk::default());
        }
        write(&mut self.writer, &mut self.bytes);
    }
}

impl Encoder for StreamedResponse {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        // Some servers send chunks with empty ids before the answer.
        let names_answer = chunk.id.as_deref().is_some_and(|id| !id.is_empty());
        if !self.has_begun && (names_answer || !chunk.choices().is_empty()) {
            self.begin_as(chunk);
        }
    }

    fn carry(&mut self, chunk: &ChatCompletionChunk<'_>) {
        self.writer.carry(chunk, 0);
    }

    fn content(&mut self, text: &str) {
        self.write(|writer, out| writer.content(text, out));
    }

    fn reasoning(&mut self, name: ReasoningField, text: &str) {
        self.write(|writer, out| writer.reasoning(name, text, out));
    }

    fn refusal(&mut self, text: &str) {
        self.write(|writer, out| writer.refusal(text, out));
    }

    fn call(&mut self, index: u64, id: &str, name: &str) {
        self.write(|writer, out| writer.call(index, id, name, out));
    }

    fn arguments(&mut self, index: u64, piece: &str) {
        self.write(|writer, out| writer.arguments(index, piece, out));
    }

    fn native_call(&mut self, index: u64, _is_first: bool, piece: &ToolCall<'_>) {
        self.write(|writer, out| writer.call_piece(index, piece, out));
    }

    fn can_interleave(&self) -> bool {
        true
    }

    fn finish(&mut self, reason: &str) {
        self.write(|writer, out| writer.finish(reason, out));
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        if self.includes_usage {
            self.write(|writer, out| writer.usage(usage, out));
        }
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn done(&mut self) {
        done_event(&mut self.bytes);
    }

    fn error(&mut self, error: &GatewayError) {
        error_event(&error.body, &mut self.bytes);
    }

    fn keep_alive(&self, is_holding: bool) -> Vec<u8> {
        if !is_holding {
            return keep_alive_comment();
        }
        // Some clients time out unless they receive chunks.
        let mut bytes = Vec::new();
        self.writer.empty(&mut bytes);
        bytes
    }
}
