//! A reply as an event stream.

use plaincall_wire::anthropic::{EventWriter, error_event, ping_event};
use plaincall_wire::openai::{ChatCompletion, ChatCompletionChunk, ReasoningField, Usage};

use crate::api::encoder::{Encoder, model_name};
use crate::api::messages::ending::Ending;
use crate::api::messages::{call_id, error_object};
use crate::error::GatewayError;

/// Writes a reply as events.
#[derive(Debug)]
pub(super) struct StreamedMessage {
    id: String,
    /// The requested model, if the model server names none.
    model: String,
    shows_thinking: bool,
    ending: Ending,
    writer: EventWriter,
    has_begun: bool,
    bytes: Vec<u8>,
}

impl StreamedMessage {
    pub(super) fn new(id: String, model: String, shows_thinking: bool, ending: Ending) -> Self {
        Self {
            id,
            model,
            shows_thinking,
            ending,
            writer: EventWriter::default(),
            has_begun: false,
            bytes: Vec::new(),
        }
    }

    fn begin_as(&mut self, model: Option<&str>) {
        let model = model_name(model).unwrap_or(&self.model);
        self.writer.start(&self.id, model, &mut self.bytes);
        ping_event(&mut self.bytes);
        self.has_begun = true;
    }

    fn write(&mut self, write: impl FnOnce(&mut EventWriter, &mut Vec<u8>)) {
        if !self.has_begun {
            self.begin_as(None);
        }
        write(&mut self.writer, &mut self.bytes);
    }
}

impl Encoder for StreamedMessage {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        // Some servers send chunks without a choice before the answer.
        if !self.has_begun && !chunk.choices().is_empty() {
            self.begin_as(chunk.model.as_deref());
        }
    }

    fn carry(&mut self, chunk: &ChatCompletionChunk<'_>) {
        for choice in chunk.choices() {
            self.ending.of_choice(choice.finished(), &choice.unknown);
        }
    }

    fn content(&mut self, text: &str) {
        self.write(|writer, out| writer.text(text, out));
    }

    fn reasoning(&mut self, _name: ReasoningField, text: &str) {
        if self.shows_thinking {
            self.write(|writer, out| writer.thinking(text, out));
        }
    }

    fn refusal(&mut self, text: &str) {
        self.ending.refusal();
        self.write(|writer, out| writer.text(text, out));
    }

    fn call(&mut self, _index: u64, id: &str, name: &str) {
        let id = call_id::for_client(id);
        self.write(|writer, out| writer.tool_use(&id, name, out));
    }

    fn arguments(&mut self, _index: u64, piece: &str) {
        self.write(|writer, out| writer.input_json(piece, out));
    }

    fn is_continued(&self) -> bool {
        true
    }

    fn finish(&mut self, reason: &str) {
        self.ending.finish(reason);
        // The last events contain the usage, which arrives later.
        self.write(EventWriter::close);
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        self.ending.usage(usage);
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn answer(&mut self, completion: ChatCompletion<'_>) {
        self.ending.of_completion(&completion);
    }

    fn done(&mut self) {
        if !self.has_begun {
            self.begin_as(None);
        }
        let ending = &self.ending;
        self.writer.end(
            ending.stop_reason(),
            ending.stop_sequence(),
            ending.total_usage(),
            &mut self.bytes,
        );
    }

    fn error(&mut self, error: &GatewayError) {
        error_event(&error_object(error), &mut self.bytes);
    }

    fn keep_alive(&self, _is_holding: bool) -> Vec<u8> {
        let mut bytes = Vec::new();
        ping_event(&mut bytes);
        bytes
    }
}
