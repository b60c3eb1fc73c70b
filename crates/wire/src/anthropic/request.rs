//! What a client asks of `POST /v1/messages`.

use std::borrow::Cow;

use super::content::Content;
use crate::json::Json;

object! {
    /// The body of a request for an answer. Sampling, tools and the like are in `unknown`.
    pub struct MessagesRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The most tokens that are written; the server insists on it.
        "max_tokens" max_tokens: Option<u64>,
        /// What the model is told before the conversation.
        "system" system: Option<Content<'a>>,
        /// The conversation so far.
        "messages" messages: Vec<Message<'a>>,
        /// Whether and how much the model thinks.
        "thinking" thinking: Option<Json<'a>>,
        /// Whether the answer comes as a stream.
        "stream" stream: Option<bool>,
    }

    /// A message of the conversation.
    pub struct Message<'a> {
        /// Who speaks: `user` or `assistant`.
        "role" role: Option<Cow<'a, str>>,
        /// What is said.
        "content" content: Option<Content<'a>>,
    }
}

impl<'a> Message<'a> {
    /// A message with a role and a content.
    pub fn new(role: impl Into<Cow<'a, str>>, content: impl Into<Content<'a>>) -> Self {
        Self {
            role: Some(role.into()),
            content: Some(content.into()),
            ..Self::default()
        }
    }
}
