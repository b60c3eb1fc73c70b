//! The content of messages: texts and blocks.

use std::borrow::Cow;

use crate::json::Json;

content! {
    /// The content of a message: a text, or blocks of several kinds.
    pub enum Content {
        /// A text, which is equivalent to one block of kind `text`.
        Text,
        /// Blocks.
        Blocks(ContentBlock) expected "a string or a list of blocks",
    }
}

object! {
    /// A block of a content.
    pub struct ContentBlock<'a> {
        /// The kind: `text`, `thinking`, `redacted_thinking`, `tool_use`, `tool_result`, `image` …
        "type" kind: Option<Cow<'a, str>>,
        /// The text of a block of kind `text`.
        "text" text: Option<Cow<'a, str>>,
        /// The thinking of a block of kind `thinking`.
        "thinking" thinking: Option<Cow<'a, str>>,
        /// The signature of the thinking, which the server needs when it is sent back.
        "signature" signature: Option<Cow<'a, str>>,
        /// The id of a call.
        "id" id: Option<Cow<'a, str>>,
        /// The tool name of a call.
        "name" name: Option<Cow<'a, str>>,
        /// The arguments of a call, a JSON object.
        "input" input: Option<Json<'a>>,
    }
}

impl<'a> ContentBlock<'a> {
    /// Creates a block of text.
    pub fn text(text: impl Into<Cow<'a, str>>) -> Self {
        Self {
            kind: Some("text".into()),
            text: Some(text.into()),
            ..Self::default()
        }
    }
}
