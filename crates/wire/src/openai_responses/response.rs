//! The response.

use std::borrow::Cow;

use super::item::Item;
use crate::json::Json;
use crate::openai;

object! {
    /// A response. The first events of a stream contain one without output. Options that the response repeats from the
    /// request are in `unknown`.
    pub struct Response<'a> {
        /// The id of the response.
        "id" id: Option<Cow<'a, str>>,
        /// `response`
        "object" object: Option<Cow<'a, str>>,
        /// The creation time, in seconds since 1970.
        "created_at" created_at: Option<Json<'a>>,
        /// The status: `in_progress`, `completed`, `incomplete` or `failed`.
        "status" status: Option<Cow<'a, str>>,
        /// The error of a failed response, with `code` and `message`.
        "error" error: Option<Json<'a>>,
        /// Why a response is incomplete: its `reason` is `max_output_tokens` or `content_filter`.
        "incomplete_details" incomplete_details: Option<Json<'a>>,
        /// The model that answered.
        "model" model: Option<Cow<'a, str>>,
        /// The output.
        "output" output: Option<Vec<Item<'a>>>,
        /// The token usage.
        "usage" usage: Option<Usage<'a>>,
    }

    /// The token usage.
    pub struct Usage<'a> {
        /// Input tokens.
        "input_tokens" input_tokens: Option<u64>,
        /// Details of the input tokens.
        "input_tokens_details" input_tokens_details: Option<UsageDetails<'a>>,
        /// Output tokens, including reasoning.
        "output_tokens" output_tokens: Option<u64>,
        /// Details of the output tokens.
        "output_tokens_details" output_tokens_details: Option<UsageDetails<'a>>,
        /// The sum of both.
        "total_tokens" total_tokens: Option<u64>,
    }

    /// Details of the token usage.
    pub struct UsageDetails<'a> {
        /// Input tokens read from the cache.
        "cached_tokens" cached_tokens: Option<u64>,
        /// Output tokens of the reasoning.
        "reasoning_tokens" reasoning_tokens: Option<u64>,
    }
}

impl From<&openai::Usage<'_>> for Usage<'static> {
    /// Converts the usage of a chat completion. All fields are written, since clients expect them.
    fn from(usage: &openai::Usage<'_>) -> Self {
        let input = usage.prompt_tokens.unwrap_or_default();
        let output = usage.completion_tokens.unwrap_or_default();
        let details = usage.unknown.get("completion_tokens_details");
        let details = details.and_then(|json| json.read::<UsageDetails<'_>>().ok());
        let reasoning = details.and_then(|details| details.reasoning_tokens);
        Self {
            input_tokens: Some(input),
            input_tokens_details: Some(UsageDetails {
                cached_tokens: Some(usage.cached_tokens()),
                ..UsageDetails::default()
            }),
            output_tokens: Some(output),
            output_tokens_details: Some(UsageDetails {
                reasoning_tokens: Some(reasoning.unwrap_or_default()),
                ..UsageDetails::default()
            }),
            total_tokens: Some(input.saturating_add(output)),
            ..Self::default()
        }
    }
}
