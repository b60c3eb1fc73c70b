//! A reply as an event stream.

use plaincall_wire::openai::{
    ChatCompletionChunk, ChunkHead, ChunkWriter, ErrorObject, ReasoningField, Usage, done_event,
    error_event,
};

use crate::outlet::Outlet;

/// Writes a reply as the events of a stream. The server takes the bytes away with [`take`](Self::take).
#[derive(Debug)]
pub struct StreamedAnswer {
    /// What stands in chunks if the model's server does not say it.
    id: String,
    created: u64,
    includes_usage: bool,
    writer: Option<ChunkWriter>,
    /// What came before the first chunk of an answer.
    early: ChatCompletionChunk<'static>,
    bytes: Vec<u8>,
}

impl StreamedAnswer {
    /// An answer for a client that wants to know what it cost, or does not. The id and the time, in seconds since 1970,
    /// are for servers that give none.
    pub fn new(id: impl Into<String>, created: u64, includes_usage: bool) -> Self {
        Self {
            id: id.into(),
            created,
            includes_usage,
            writer: None,
            early: ChatCompletionChunk::default(),
            bytes: Vec::new(),
        }
    }

    /// Whether anything has been written, so that it is too late for another status.
    pub fn has_begun(&self) -> bool {
        self.writer.is_some()
    }

    /// The bytes that can go out now.
    pub fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    /// Ends the stream.
    pub fn done(&mut self) {
        done_event(&mut self.bytes);
    }

    /// Ends the stream with an error.
    pub fn error(&mut self, error: &ErrorObject<'_>) {
        error_event(error, &mut self.bytes);
    }

    /// Writes the first chunk, with the names of this one.
    fn begin_as(&mut self, chunk: &ChatCompletionChunk<'_>) {
        let created = chunk.created.as_ref();
        let head = ChunkHead {
            id: chunk
                .id
                .as_deref()
                .filter(|id| !id.is_empty())
                .unwrap_or(&self.id),
            created: created
                .and_then(|json| json.read().ok())
                .unwrap_or(self.created),
            model: chunk.model.as_deref().unwrap_or_default(),
            service_tier: chunk.service_tier.as_deref(),
            system_fingerprint: chunk.system_fingerprint.as_deref(),
            includes_usage: self.includes_usage,
        };
        let mut writer = ChunkWriter::new(&head, 0);
        writer.carry(&std::mem::take(&mut self.early), 0);
        writer.role(&mut self.bytes);
        self.writer = Some(writer);
    }

    fn write(&mut self, write: impl FnOnce(&mut ChunkWriter, &mut Vec<u8>)) {
        if self.writer.is_none() {
            self.begin_as(&ChatCompletionChunk::default());
        }
        if let Some(writer) = &mut self.writer {
            write(writer, &mut self.bytes);
        }
    }
}

impl Outlet for StreamedAnswer {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        // Some servers send something before the answer, with empty names.
        let names_answer = chunk.id.as_deref().is_some_and(|id| !id.is_empty());
        if self.writer.is_none() && (names_answer || !chunk.choices().is_empty()) {
            self.begin_as(chunk);
        }
    }

    fn carry(&mut self, chunk: &ChatCompletionChunk<'_>) {
        match &mut self.writer {
            Some(writer) => writer.carry(chunk, 0),
            None => {
                for (name, value) in chunk.unknown.clone().into_owned().iter() {
                    self.early.unknown.set(name.to_owned(), value.clone());
                }
            }
        }
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

    fn finish(&mut self, reason: &str) {
        self.write(|writer, out| writer.finish(reason, out));
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        if self.includes_usage {
            self.write(|writer, out| writer.usage(usage, out));
        }
    }
}
