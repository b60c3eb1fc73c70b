//! The events of a streamed answer.

use std::borrow::Cow;

use super::content::ContentBlock;
use super::response::{MessageResponse, Usage};

object! {
    /// The data of an event of a streamed answer; [`news`](Self::news) says what it means.
    pub struct StreamEvent<'a> {
        /// The kind, which is the event's name too.
        "type" kind: Option<Cow<'a, str>>,
        /// The answer at its beginning, of `message_start`.
        "message" message: Option<MessageResponse<'a>>,
        /// A block at its beginning, of `content_block_start`.
        "content_block" content_block: Option<ContentBlock<'a>>,
        /// What is new.
        "delta" delta: Option<BlockDelta<'a>>,
        /// What it has cost so far, of `message_delta`.
        "usage" usage: Option<Usage<'a>>,
    }

    /// What is new in a block, or in the answer as a whole.
    pub struct BlockDelta<'a> {
        /// The kind, of a block: `text_delta`, `thinking_delta`, `signature_delta`, `input_json_delta` …
        "type" kind: Option<Cow<'a, str>>,
        /// Text.
        "text" text: Option<Cow<'a, str>>,
        /// Thoughts.
        "thinking" thinking: Option<Cow<'a, str>>,
        /// Why the answer ended, in the answer as a whole.
        "stop_reason" stop_reason: Option<Cow<'a, str>>,
    }
}

/// What an event of a stream means.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum News<'e> {
    /// The answer begins.
    Start(&'e MessageResponse<'e>),
    /// A block begins. It may hold text already.
    BlockStart(&'e ContentBlock<'e>),
    /// A piece of text.
    Text(&'e str),
    /// A piece of thoughts.
    Thinking(&'e str),
    /// A piece of a call's arguments.
    InputJson,
    /// How the answer ends, and what it has cost so far.
    Ending {
        /// Why it ends.
        stop_reason: Option<&'e str>,
        /// What it has cost so far.
        usage: Option<&'e Usage<'e>>,
    },
    /// The answer has ended.
    Stop,
    /// An error ends the stream. [`read_error`](crate::openai::read_error) reads the data.
    Error,
    /// A sign of life, or something that this crate does not look at.
    Other,
}

impl StreamEvent<'_> {
    /// What it means.
    pub fn news(&self) -> News<'_> {
        let delta = self.delta.as_ref();
        let news = match self.kind.as_deref().unwrap_or_default() {
            "message_start" => self.message.as_ref().map(News::Start),
            "content_block_start" => self.content_block.as_ref().map(News::BlockStart),
            "content_block_delta" => delta.and_then(BlockDelta::news),
            "message_delta" => Some(News::Ending {
                stop_reason: delta.and_then(|delta| delta.stop_reason.as_deref()),
                usage: self.usage.as_ref(),
            }),
            "message_stop" => Some(News::Stop),
            "error" => Some(News::Error),
            _ => None,
        };
        news.unwrap_or(News::Other)
    }
}

impl BlockDelta<'_> {
    fn news(&self) -> Option<News<'_>> {
        match self.kind.as_deref()? {
            "text_delta" => self.text.as_deref().map(News::Text),
            "thinking_delta" => self.thinking.as_deref().map(News::Thinking),
            "input_json_delta" => Some(News::InputJson),
            _ => None,
        }
    }
}
