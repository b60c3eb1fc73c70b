//! The request of `POST /v1/messages`.

use std::borrow::Cow;

use super::content::Content;
use crate::json::Json;

object! {
    /// The body of a request. Sampling parameters, tools and other fields are in `unknown`.
    pub struct MessagesRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The maximum number of output tokens. The server requires it.
        "max_tokens" max_tokens: Option<u64>,
        /// The system prompt.
        "system" system: Option<Content<'a>>,
        /// The conversation so far.
        "messages" messages: Vec<Message<'a>>,
        /// The thinking configuration.
        "thinking" thinking: Option<Json<'a>>,
        /// Whether the response is streamed.
        "stream" stream: Option<bool>,
    }

    /// A message of the conversation.
    pub struct Message<'a> {
        /// The role: `user` or `assistant`.
        "role" role: Option<Cow<'a, str>>,
        /// The content.
        "content" content: Option<Content<'a>>,
    }
}

impl<'a> Message<'a> {
    /// Creates a message with a role and a content.
    pub fn new(role: impl Into<Cow<'a, str>>, content: impl Into<Content<'a>>) -> Self {
        Self {
            role: Some(role.into()),
            content: Some(content.into()),
            ..Self::default()
        }
    }
}
