//! A chunk of a streamed response, for reading.

use std::borrow::Cow;

use super::content::Content;
use super::message::ToolCall;
use super::response::Usage;
use crate::json::Json;
use crate::read_error::ReadError;

object! {
    /// The data of one event of a stream. Strings without escapes are borrowed.
    ///
    /// ```
    /// use plaincall_wire::openai::ChatCompletionChunk;
    ///
    /// let data = r#"{"id":"1","choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}"#;
    /// let chunk = ChatCompletionChunk::read(data)?.expect("more than [DONE]");
    /// assert_eq!(chunk.choices()[0].content(), "Hi");
    /// assert!(ChatCompletionChunk::read("[DONE]")?.is_none());
    /// # Ok::<(), plaincall_wire::ReadError>(())
    /// ```
    pub struct ChatCompletionChunk<'a> {
        /// The id of the response.
        "id" id: Option<Cow<'a, str>>,
        /// `chat.completion.chunk`
        "object" object: Option<Cow<'a, str>>,
        /// The creation time, in seconds since 1970.
        "created" created: Option<Json<'a>>,
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The service tier.
        "service_tier" service_tier: Option<Cow<'a, str>>,
        /// The fingerprint of the system.
        "system_fingerprint" system_fingerprint: Option<Cow<'a, str>>,
        /// One delta for each active choice. Empty in a chunk with only the usage; `null` from some servers.
        "choices" choices: Option<Vec<ChunkChoice<'a>>>,
        /// The usage, in the last chunk; from some servers, in each chunk.
        "usage" usage: Option<Usage<'a>>,
        /// An error in the middle of the stream. [`read_error`](super::read_error) reads the entire data.
        "error" error: Option<Json<'a>>,
    }

    /// A choice in a chunk.
    pub struct ChunkChoice<'a> {
        /// The index of the choice, from 0.
        "index" index: Option<u64>,
        /// The delta.
        "delta" delta: Option<Delta<'a>>,
        /// The probabilities of its tokens.
        "logprobs" logprobs: Option<Json<'a>>,
        /// The finish reason: `stop`, `length`, `tool_calls`, `content_filter`, or another word.
        "finish_reason" finish_reason: Option<Cow<'a, str>>,
    }

    /// A delta.
    pub struct Delta<'a> {
        /// `assistant`, in the first chunk; from some servers, in each chunk.
        "role" role: Option<Cow<'a, str>>,
        /// Text.
        "content" content: Option<Content<'a>>,
        /// The text with which the model declines to answer.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// Reasoning, as named by `DeepSeek`, llama.cpp and others.
        "reasoning_content" reasoning_content: Option<Cow<'a, str>>,
        /// Reasoning, as named by vLLM, Ollama and `OpenRouter`.
        "reasoning" reasoning: Option<Cow<'a, str>>,
        /// Pieces of calls.
        "tool_calls" tool_calls: Option<Vec<ToolCall<'a>>>,
    }
}

impl<'a> ChatCompletionChunk<'a> {
    /// Reads the data of an event. Returns `None` for `[DONE]`, which ends the stream.
    ///
    /// # Errors
    /// Returns an error if the data is invalid.
    pub fn read(data: &'a str) -> Result<Option<Self>, ReadError> {
        if data.trim_ascii() == "[DONE]" {
            return Ok(None);
        }
        Json::read_text(data).map(Some)
    }

    /// Returns whether this is an error in place of a chunk, in any of the forms of [`read_error`](super::read_error).
    pub fn is_error(&self) -> bool {
        let is_given = |json: &Json<'_>| !json.is_null();
        let has = |name| self.unknown.get(name).is_some_and(is_given);
        let has_text = |name| {
            self.unknown
                .get(name)
                .is_some_and(|json| json.text().starts_with('"'))
        };
        let is_message = || {
            let kind = self.unknown.get("type").map_or("", Json::text);
            let is_coded = has("code") || has("status") || kind.contains("rror");
            has("error_type")
                || has("error_message")
                || has("detail")
                || is_coded && (has_text("message") || has_text("msg"))
        };
        self.error.as_ref().is_some_and(is_given)
            || self.object.as_deref() == Some("error")
            || self.choices().is_empty() && self.usage.is_none() && is_message()
    }

    /// Returns the choices.
    pub fn choices(&self) -> &[ChunkChoice<'a>] {
        self.choices.as_deref().unwrap_or_default()
    }
}

impl<'a> ChunkChoice<'a> {
    /// Returns the new text, which may be empty.
    pub fn content(&self) -> Cow<'_, str> {
        let delta = self.delta.as_ref();
        let content = delta.and_then(|delta| delta.content.as_ref());
        content.map_or(Cow::Borrowed(""), Content::text)
    }

    /// Returns the new reasoning under either name, which may be empty.
    pub fn thought(&self) -> Cow<'_, str> {
        let Some(delta) = &self.delta else {
            return Cow::Borrowed("");
        };
        // Some servers send both fields with the same text.
        let named = delta.reasoning_content.as_deref();
        match named.or(delta.reasoning.as_deref()) {
            Some(thought) => Cow::Borrowed(thought),
            None => match &delta.content {
                Some(content @ Content::Parts(_)) => Cow::Owned(content.thinking().collect()),
                _ => Cow::Borrowed(""),
            },
        }
    }

    /// Returns the pieces of calls.
    pub fn calls(&self) -> &[ToolCall<'a>] {
        let delta = self.delta.as_ref();
        let calls = delta.and_then(|delta| delta.tool_calls.as_deref());
        calls.unwrap_or_default()
    }

    /// Returns the finish reason, if any. Some servers send an empty one in earlier chunks.
    pub fn finished(&self) -> Option<&str> {
        let reason = self.finish_reason.as_deref();
        reason.filter(|reason| !reason.is_empty())
    }
}
