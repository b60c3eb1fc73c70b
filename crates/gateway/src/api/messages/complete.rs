//! A reply as one complete response.

use plaincall_wire::Json;
use plaincall_wire::anthropic::{ContentBlock, MessageResponse};
use plaincall_wire::openai::{ChatCompletion, ReasoningField, Usage};

use crate::api::encoder::Encoder;
use crate::api::messages::call_id;
use crate::api::messages::ending::Ending;
use crate::error::GatewayError;

/// Collects a reply into one response.
#[derive(Debug, Default)]
pub(super) struct CompleteMessage {
    id: String,
    /// The requested model, if the model server names none.
    model: String,
    shows_thinking: bool,
    ending: Ending,
    blocks: Vec<Block>,
    bytes: Vec<u8>,
}

#[derive(Debug)]
enum Block {
    Text(String),
    Thinking(String),
    ToolUse {
        id: String,
        name: String,
        input: String,
    },
}

impl CompleteMessage {
    pub(super) fn new(id: String, model: String, shows_thinking: bool, ending: Ending) -> Self {
        Self {
            id,
            model,
            shows_thinking,
            ending,
            ..Self::default()
        }
    }
}

impl Block {
    fn into_content(self) -> ContentBlock<'static> {
        match self {
            Self::Text(text) => ContentBlock::text(text),
            Self::Thinking(thinking) => ContentBlock {
                kind: Some("thinking".into()),
                thinking: Some(thinking.into()),
                signature: Some("".into()),
                ..ContentBlock::default()
            },
            Self::ToolUse { id, name, input } => {
                // A call of a model server may have any text.
                let read = Json::parse(&input).map(Json::into_owned);
                ContentBlock {
                    kind: Some("tool_use".into()),
                    id: Some(id.into()),
                    name: Some(name.into()),
                    input: Some(read.unwrap_or_else(|_| Json::new(&input))),
                    ..ContentBlock::default()
                }
            }
        }
    }
}

impl Encoder for CompleteMessage {
    fn content(&mut self, text: &str) {
        match self.blocks.last_mut() {
            Some(Block::Text(last)) => last.push_str(text),
            _ => self.blocks.push(Block::Text(text.to_owned())),
        }
    }

    fn reasoning(&mut self, _name: ReasoningField, text: &str) {
        if !self.shows_thinking {
            return;
        }
        match self.blocks.last_mut() {
            Some(Block::Thinking(last)) => last.push_str(text),
            _ => self.blocks.push(Block::Thinking(text.to_owned())),
        }
    }

    fn refusal(&mut self, text: &str) {
        self.ending.refusal();
        self.content(text);
    }

    fn call(&mut self, _index: u64, id: &str, name: &str) {
        self.blocks.push(Block::ToolUse {
            id: call_id::for_client(id).into_owned(),
            name: name.to_owned(),
            input: String::new(),
        });
    }

    fn arguments(&mut self, _index: u64, piece: &str) {
        if let Some(Block::ToolUse { input, .. }) = self.blocks.last_mut() {
            input.push_str(piece);
        }
    }

    fn is_continued(&self) -> bool {
        true
    }

    fn finish(&mut self, reason: &str) {
        self.ending.finish(reason);
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        self.ending.usage(usage);
    }

    fn has_begun(&self) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn answer(&mut self, completion: ChatCompletion<'_>) {
        self.ending.of_completion(&completion);
        if let Some(model) = completion.model.filter(|model| !model.is_empty()) {
            self.model = model.into_owned();
        }
    }

    fn done(&mut self) {
        let blocks = std::mem::take(&mut self.blocks);
        let content = blocks.into_iter().map(Block::into_content).collect();
        let usage = self.ending.total_usage().clone();
        let mut message = MessageResponse::new(&*self.id, &*self.model, content, usage);
        message.stop_reason = Some(self.ending.stop_reason().into());
        message.stop_sequence = Some(Json::new(&self.ending.stop_sequence()));
        self.bytes = plaincall_wire::write_bytes(&message);
    }

    fn error(&mut self, _error: &GatewayError) {}
}
