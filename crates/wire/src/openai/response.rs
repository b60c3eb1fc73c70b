//! The complete response.

use std::borrow::Cow;

use super::message::Message;
use crate::json::Json;

object! {
    /// A chat completion that is not streamed.
    pub struct ChatCompletion<'a> {
        /// The id of the response.
        "id" id: Option<Cow<'a, str>>,
        /// `chat.completion`
        "object" object: Option<Cow<'a, str>>,
        /// The creation time, in seconds since 1970.
        "created" created: Option<Json<'a>>,
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The choices; `null` from some servers.
        "choices" choices: Option<Vec<Choice<'a>>>,
        /// The token usage.
        "usage" usage: Option<Usage<'a>>,
        /// The fingerprint of the system.
        "system_fingerprint" system_fingerprint: Option<Cow<'a, str>>,
        /// The service tier.
        "service_tier" service_tier: Option<Cow<'a, str>>,
    }

    /// A choice of a [`ChatCompletion`].
    pub struct Choice<'a> {
        /// Its index, from 0.
        "index" index: Option<u64>,
        /// The message.
        "message" message: Option<Message<'a>>,
        /// The probabilities of its tokens.
        "logprobs" logprobs: Option<Json<'a>>,
        /// The finish reason: `stop`, `length`, `tool_calls`, `content_filter`, or another word.
        "finish_reason" finish_reason: Option<Cow<'a, str>>,
    }

    /// The token usage.
    pub struct Usage<'a> {
        /// Input tokens.
        "prompt_tokens" prompt_tokens: Option<u64>,
        /// Output tokens, including reasoning.
        "completion_tokens" completion_tokens: Option<u64>,
        /// The sum of both.
        "total_tokens" total_tokens: Option<u64>,
    }
}

object! {
    struct PromptDetails<'a> {
        "cached_tokens" cached_tokens: Option<u64>,
    }
}

impl<'a> ChatCompletion<'a> {
    /// Returns the choices.
    pub fn choices(&self) -> &[Choice<'a>] {
        self.choices.as_deref().unwrap_or_default()
    }
}

impl Usage<'_> {
    /// Returns the number of cached input tokens, from any of its fields.
    pub fn cached_tokens(&self) -> u64 {
        let details = self.unknown.get("prompt_tokens_details");
        let details = details.and_then(|json| json.read::<PromptDetails<'_>>().ok());
        let named = || {
            let named = self.unknown.get("prompt_cache_hit_tokens")?;
            named.read().ok()
        };
        let cached = details.and_then(|details| details.cached_tokens);
        cached.or_else(named).unwrap_or_default()
    }

    /// Adds the usage of another response. Unknown fields stay unchanged.
    pub fn add(&mut self, other: &Usage<'_>) {
        let add = |sum: &mut Option<u64>, more: Option<u64>| {
            *sum = match (*sum, more) {
                (Some(sum), Some(more)) => Some(sum.saturating_add(more)),
                (sum, more) => sum.or(more),
            };
        };
        add(&mut self.prompt_tokens, other.prompt_tokens);
        add(&mut self.completion_tokens, other.completion_tokens);
        add(&mut self.total_tokens, other.total_tokens);
    }
}
