//! The events of a streamed answer.

use std::borrow::Cow;

use super::content::ContentBlock;
use super::response::{MessageResponse, Usage};
use crate::json::Json;

object! {
    /// The data of an event of a streamed answer; [`news`](Self::news) says what it means.
    ///
    /// ```
    /// use plaincall_wire::anthropic::{News, StreamEvent};
    /// use plaincall_wire::read;
    ///
    /// let event: StreamEvent =
    ///     read(br#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Hi"}}"#)?;
    /// assert_eq!(event.news(), News::Text { index: 0, text: "Hi" });
    /// # Ok::<(), plaincall_wire::ReadError>(())
    /// ```
    pub struct StreamEvent<'a> {
        /// The kind, which is the event's name too.
        "type" kind: Option<Cow<'a, str>>,
        /// The answer at its beginning, of `message_start`.
        "message" message: Option<MessageResponse<'a>>,
        /// The number of a block, from 0.
        "index" index: Option<u64>,
        /// A block at its beginning, of `content_block_start`.
        "content_block" content_block: Option<ContentBlock<'a>>,
        /// What is new.
        "delta" delta: Option<BlockDelta<'a>>,
        /// What it has cost so far, of `message_delta`.
        "usage" usage: Option<Usage<'a>>,
        /// What went wrong, of `error`.
        "error" error: Option<Json<'a>>,
    }

    /// What is new in a block, or in the answer as a whole.
    pub struct BlockDelta<'a> {
        /// The kind, of a block: `text_delta`, `thinking_delta`, `signature_delta`, `input_json_delta` …
        "type" kind: Option<Cow<'a, str>>,
        /// Text.
        "text" text: Option<Cow<'a, str>>,
        /// Thoughts.
        "thinking" thinking: Option<Cow<'a, str>>,
        /// The signature of the thoughts.
        "signature" signature: Option<Cow<'a, str>>,
        /// A piece of the text of a call's arguments.
        "partial_json" partial_json: Option<Cow<'a, str>>,
        /// Why the answer ended, in the answer as a whole.
        "stop_reason" stop_reason: Option<Cow<'a, str>>,
        /// The text of the request that ended it.
        "stop_sequence" stop_sequence: Option<Cow<'a, str>>,
    }
}

/// What an event of a stream means.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum News<'e> {
    /// The answer begins.
    Start(&'e MessageResponse<'e>),
    /// A block begins. It may hold text already.
    BlockStart {
        /// Its number.
        index: u64,
        /// The block.
        block: &'e ContentBlock<'e>,
    },
    /// A piece of text.
    Text {
        /// The number of the block.
        index: u64,
        /// The piece.
        text: &'e str,
    },
    /// A piece of thoughts.
    Thinking {
        /// The number of the block.
        index: u64,
        /// The piece.
        text: &'e str,
    },
    /// The signature of the thoughts.
    Signature {
        /// The number of the block.
        index: u64,
        /// The signature.
        signature: &'e str,
    },
    /// A piece of the text of a call's arguments.
    InputJson {
        /// The number of the block.
        index: u64,
        /// The piece.
        piece: &'e str,
    },
    /// A block ends.
    BlockStop {
        /// Its number.
        index: u64,
    },
    /// How the answer ends, and what it has cost so far.
    Ending {
        /// Why it ends.
        stop_reason: Option<&'e str>,
        /// The text of the request that ended it.
        stop_sequence: Option<&'e str>,
        /// What it has cost so far.
        usage: Option<&'e Usage<'e>>,
    },
    /// The answer has ended.
    Stop,
    /// Nothing: a sign of life.
    Ping,
    /// An error ends the stream. [`read_error`](crate::openai::read_error) reads the data.
    Error,
    /// Something this crate does not know, which clients pass over.
    Other,
}

impl StreamEvent<'_> {
    /// What it means.
    pub fn news(&self) -> News<'_> {
        let index = self.index.unwrap_or_default();
        let news = match self.kind.as_deref().unwrap_or_default() {
            "message_start" => self.message.as_ref().map(News::Start),
            "content_block_start" => {
                let block = self.content_block.as_ref();
                block.map(|block| News::BlockStart { index, block })
            }
            "content_block_delta" => self.delta.as_ref().and_then(|delta| delta.news(index)),
            "content_block_stop" => Some(News::BlockStop { index }),
            "message_delta" => Some(News::Ending {
                stop_reason: self
                    .delta
                    .as_ref()
                    .and_then(|delta| delta.stop_reason.as_deref()),
                stop_sequence: self
                    .delta
                    .as_ref()
                    .and_then(|delta| delta.stop_sequence.as_deref()),
                usage: self.usage.as_ref(),
            }),
            "message_stop" => Some(News::Stop),
            "ping" => Some(News::Ping),
            "error" => Some(News::Error),
            _ => None,
        };
        news.unwrap_or(News::Other)
    }
}

impl BlockDelta<'_> {
    fn news(&self, index: u64) -> Option<News<'_>> {
        match self.kind.as_deref()? {
            "text_delta" => self.text.as_deref().map(|text| News::Text { index, text }),
            "thinking_delta" => self
                .thinking
                .as_deref()
                .map(|text| News::Thinking { index, text }),
            "signature_delta" => self
                .signature
                .as_deref()
                .map(|signature| News::Signature { index, signature }),
            "input_json_delta" => self
                .partial_json
                .as_deref()
                .map(|piece| News::InputJson { index, piece }),
            _ => None,
        }
    }
}
