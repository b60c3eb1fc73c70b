//! The events of a streamed response.

use std::borrow::Cow;

use super::content::ContentBlock;
use super::response::{MessageResponse, Usage};

object! {
    /// The data of an event of a streamed response. [`update`](Self::update) returns its meaning.
    pub struct StreamEvent<'a> {
        /// The kind, which is also the event's name.
        "type" kind: Option<Cow<'a, str>>,
        /// The initial response, of `message_start`.
        "message" message: Option<MessageResponse<'a>>,
        /// The initial block, of `content_block_start`.
        "content_block" content_block: Option<ContentBlock<'a>>,
        /// The delta.
        "delta" delta: Option<BlockDelta<'a>>,
        /// The usage so far, of `message_delta`.
        "usage" usage: Option<Usage<'a>>,
    }

    /// A delta of a block or of the response.
    pub struct BlockDelta<'a> {
        /// The kind, for a block: `text_delta`, `thinking_delta`, `signature_delta`, `input_json_delta` …
        "type" kind: Option<Cow<'a, str>>,
        /// Text.
        "text" text: Option<Cow<'a, str>>,
        /// Thinking.
        "thinking" thinking: Option<Cow<'a, str>>,
        /// The stop reason, for the response.
        "stop_reason" stop_reason: Option<Cow<'a, str>>,
    }
}

/// The meaning of an event.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamUpdate<'e> {
    /// The response begins.
    Start(&'e MessageResponse<'e>),
    /// A block begins. It may contain text already.
    BlockStart(&'e ContentBlock<'e>),
    /// A piece of text.
    Text(&'e str),
    /// A piece of thinking.
    Thinking(&'e str),
    /// A piece of a call's arguments.
    InputJson,
    /// The stop reason and the usage so far.
    Ending {
        /// The stop reason.
        stop_reason: Option<&'e str>,
        /// The usage so far.
        usage: Option<&'e Usage<'e>>,
    },
    /// The response has ended.
    Stop,
    /// An error ends the stream. [`read_error`](crate::openai::read_error) reads the data.
    Error,
    /// A keep-alive, or an event that this crate does not use.
    Other,
}

impl StreamEvent<'_> {
    /// Returns the meaning of the event.
    pub fn update(&self) -> StreamUpdate<'_> {
        let delta = self.delta.as_ref();
        let update = match self.kind.as_deref().unwrap_or_default() {
            "message_start" => self.message.as_ref().map(StreamUpdate::Start),
            "content_block_start" => self.content_block.as_ref().map(StreamUpdate::BlockStart),
            "content_block_delta" => delta.and_then(BlockDelta::update),
            "message_delta" => Some(StreamUpdate::Ending {
                stop_reason: delta.and_then(|delta| delta.stop_reason.as_deref()),
                usage: self.usage.as_ref(),
            }),
            "message_stop" => Some(StreamUpdate::Stop),
            "error" => Some(StreamUpdate::Error),
            _ => None,
        };
        update.unwrap_or(StreamUpdate::Other)
    }
}

impl BlockDelta<'_> {
    fn update(&self) -> Option<StreamUpdate<'_>> {
        match self.kind.as_deref()? {
            "text_delta" => self.text.as_deref().map(StreamUpdate::Text),
            "thinking_delta" => self.thinking.as_deref().map(StreamUpdate::Thinking),
            "input_json_delta" => Some(StreamUpdate::InputJson),
            _ => None,
        }
    }
}
