//! The complete response.

use std::borrow::Cow;

use super::content::ContentBlock;
use crate::json::Json;

object! {
    /// A response. A stream begins with one without content.
    pub struct MessageResponse<'a> {
        /// The id of the response.
        "id" id: Option<Cow<'a, str>>,
        /// `message`
        "type" kind: Option<Cow<'a, str>>,
        /// `assistant`
        "role" role: Option<Cow<'a, str>>,
        /// The model that answered.
        "model" model: Option<Cow<'a, str>>,
        /// The content.
        "content" content: Option<Vec<ContentBlock<'a>>>,
        /// The stop reason: `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`,
        /// `model_context_window_exceeded`, or another word.
        "stop_reason" stop_reason: Option<Cow<'a, str>>,
        /// The text at which the reply ended, or `null`.
        "stop_sequence" stop_sequence: Option<Json<'a>>,
        /// The token usage.
        "usage" usage: Option<Usage<'a>>,
    }

    /// The token usage. In a stream, each count is the total so far.
    pub struct Usage<'a> {
        /// Input tokens that were neither read from the cache nor written to it.
        "input_tokens" input_tokens: Option<u64>,
        /// Input tokens written to the cache.
        "cache_creation_input_tokens" cache_creation_input_tokens: Option<u64>,
        /// Input tokens read from the cache.
        "cache_read_input_tokens" cache_read_input_tokens: Option<u64>,
        /// Output tokens, including thinking.
        "output_tokens" output_tokens: Option<u64>,
    }
}

impl<'a> MessageResponse<'a> {
    /// Creates a response that has not stopped yet.
    pub fn new(
        id: impl Into<Cow<'a, str>>,
        model: impl Into<Cow<'a, str>>,
        content: Vec<ContentBlock<'a>>,
        usage: Usage<'a>,
    ) -> Self {
        Self {
            id: Some(id.into()),
            kind: Some("message".into()),
            role: Some("assistant".into()),
            model: Some(model.into()),
            content: Some(content),
            stop_sequence: Some(Json::default()),
            usage: Some(usage),
            ..Self::default()
        }
    }
}

impl Usage<'_> {
    /// Returns the total number of input tokens, cached or not.
    pub fn all_input_tokens(&self) -> u64 {
        let parts = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        ];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Merges later counts of the same stream.
    pub fn update(&mut self, later: &Usage<'_>) {
        let update = |sum: &mut Option<u64>, later: Option<u64>| *sum = later.or(*sum);
        update(&mut self.input_tokens, later.input_tokens);
        let created = later.cache_creation_input_tokens;
        update(&mut self.cache_creation_input_tokens, created);
        let read = later.cache_read_input_tokens;
        update(&mut self.cache_read_input_tokens, read);
        update(&mut self.output_tokens, later.output_tokens);
    }
}
