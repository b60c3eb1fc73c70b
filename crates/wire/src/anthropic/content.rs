//! The content of messages: texts and blocks.

use std::borrow::Cow;

use crate::json::Json;
use crate::read_error::ReadError;

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
        /// The kind: `text`, `thinking`, `redacted_thinking`, `tool_use`, `tool_result`, `image`, `document`,
        /// `tool_reference` …
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
        /// The id of the call, in its result.
        "tool_use_id" tool_use_id: Option<Cow<'a, str>>,
        /// The content of a result; [`content`](Self::content) reads it.
        "content" content: Option<Json<'a>>,
        /// Whether the call failed, in its result.
        "is_error" is_error: Option<bool>,
        /// The source of an image or a document.
        "source" source: Option<Json<'a>>,
        /// The title of a document.
        "title" title: Option<Cow<'a, str>>,
        /// The name of a tool, in a block of kind `tool_reference`.
        "tool_name" tool_name: Option<Cow<'a, str>>,
    }

    /// The source of an image or a document.
    pub struct Source<'a> {
        /// The kind: `base64`, `url`, `text`, `content`, `file`.
        "type" kind: Option<Cow<'a, str>>,
        /// The media type of `data`.
        "media_type" media_type: Option<Cow<'a, str>>,
        /// The data: base64, or a text.
        "data" data: Option<Cow<'a, str>>,
        /// The URL.
        "url" url: Option<Cow<'a, str>>,
        /// The content of a source of kind `content`.
        "content" content: Option<Content<'a>>,
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

    /// Reads the content of a result.
    ///
    /// # Errors
    /// Returns an error if it is neither a string nor a list of blocks.
    pub fn content(&self) -> Result<Option<Content<'_>>, ReadError> {
        let content = self.content.as_ref().filter(|content| !content.is_null());
        content.map(Json::read_field).transpose()
    }
}
