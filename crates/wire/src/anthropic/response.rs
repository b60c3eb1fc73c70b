//! The whole answer.

use std::borrow::Cow;

use super::content::ContentBlock;

object! {
    /// An answer. In a stream it begins as one without content.
    pub struct MessageResponse<'a> {
        /// The id of the answer.
        "id" id: Option<Cow<'a, str>>,
        /// `message`
        "type" kind: Option<Cow<'a, str>>,
        /// `assistant`
        "role" role: Option<Cow<'a, str>>,
        /// The model that answered.
        "model" model: Option<Cow<'a, str>>,
        /// Returns its meaning.
        "content" content: Option<Vec<ContentBlock<'a>>>,
        /// Why it ended: `end_turn`, `max_tokens`, `stop_sequence`, `tool_use`, `pause_turn`, `refusal`,
        /// `model_context_window_exceeded`, or another word.
        "stop_reason" stop_reason: Option<Cow<'a, str>>,
        /// The token usage.
        "usage" usage: Option<Usage<'a>>,
    }

    /// The token usage. In a stream each figure is the sum so far.
    pub struct Usage<'a> {
        /// What was read, neither from the cache nor into it.
        "input_tokens" input_tokens: Option<u64>,
        /// What was read into the cache.
        "cache_creation_input_tokens" cache_creation_input_tokens: Option<u64>,
        /// What was read from the cache.
        "cache_read_input_tokens" cache_read_input_tokens: Option<u64>,
        /// What was written, thoughts included.
        "output_tokens" output_tokens: Option<u64>,
    }
}

impl Usage<'_> {
    /// All that was read, in tokens, through the cache or not.
    pub fn all_input_tokens(&self) -> u64 {
        let parts = [
            self.input_tokens,
            self.cache_creation_input_tokens,
            self.cache_read_input_tokens,
        ];
        parts.into_iter().flatten().fold(0, u64::saturating_add)
    }

    /// Takes in later figures of the same stream.
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
