//! A piece of an answer that is streamed, as it is read.

use std::borrow::Cow;

use super::content::Content;
use super::message::ToolCall;
use super::response::Usage;
use crate::json::Json;
use crate::read_error::ReadError;

object! {
    /// The data of one event of a stream. All that is text borrows from it where it holds no escapes.
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
        /// The id of the answer.
        "id" id: Option<Cow<'a, str>>,
        /// `chat.completion.chunk`
        "object" object: Option<Cow<'a, str>>,
        /// When, in seconds since 1970.
        "created" created: Option<Json<'a>>,
        /// The model that answers.
        "model" model: Option<Cow<'a, str>>,
        /// How it is served.
        "service_tier" service_tier: Option<Cow<'a, str>>,
        /// What the model runs on.
        "system_fingerprint" system_fingerprint: Option<Cow<'a, str>>,
        /// The pieces, one for each answer that goes on; none in a chunk that tells the usage; `null` from some servers.
        "choices" choices: Option<Vec<ChunkChoice<'a>>>,
        /// What the answer cost; in the last chunk, from some servers in each.
        "usage" usage: Option<Usage<'a>>,
        /// What went wrong in the middle of the stream; [`read_error`](super::read_error) reads the whole data.
        "error" error: Option<Json<'a>>,
    }

    /// A piece of one answer.
    pub struct ChunkChoice<'a> {
        /// The number of the answer, from 0.
        "index" index: Option<u64>,
        /// What is new.
        "delta" delta: Option<Delta<'a>>,
        /// The probabilities of its tokens.
        "logprobs" logprobs: Option<Json<'a>>,
        /// Why the answer ended: `stop`, `length`, `tool_calls`, `content_filter`, or another word.
        "finish_reason" finish_reason: Option<Cow<'a, str>>,
    }

    /// What is new in an answer.
    pub struct Delta<'a> {
        /// `assistant`, in the first chunk; from some servers in each.
        "role" role: Option<Cow<'a, str>>,
        /// Text.
        "content" content: Option<Content<'a>>,
        /// What a model says in place of an answer that it refuses.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// Thoughts, as `DeepSeek`, llama.cpp and others name them.
        "reasoning_content" reasoning_content: Option<Cow<'a, str>>,
        /// Thoughts, as vLLM, Ollama and `OpenRouter` name them.
        "reasoning" reasoning: Option<Cow<'a, str>>,
        /// Pieces of calls.
        "tool_calls" tool_calls: Option<Vec<ToolCall<'a>>>,
    }
}

impl<'a> ChatCompletionChunk<'a> {
    /// Reads the data of an event; nothing for `[DONE]`, which ends the stream.
    ///
    /// # Errors
    /// Says what is wrong with the data.
    pub fn read(data: &'a str) -> Result<Option<Self>, ReadError> {
        if data.trim_ascii() == "[DONE]" {
            return Ok(None);
        }
        Json::read_text(data).map(Some)
    }

    /// The pieces.
    pub fn choices(&self) -> &[ChunkChoice<'a>] {
        self.choices.as_deref().unwrap_or_default()
    }
}

impl<'a> ChunkChoice<'a> {
    /// The new text, or an empty one.
    pub fn content(&self) -> Cow<'_, str> {
        let delta = self.delta.as_ref();
        let content = delta.and_then(|delta| delta.content.as_ref());
        content.map_or(Cow::Borrowed(""), Content::text)
    }

    /// The new thoughts, under whichever name, or an empty text.
    pub fn thought(&self) -> Cow<'_, str> {
        let Some(delta) = &self.delta else {
            return Cow::Borrowed("");
        };
        // Some servers give both names, with the same text.
        let named = delta.reasoning_content.as_deref();
        match named.or(delta.reasoning.as_deref()) {
            Some(thought) => Cow::Borrowed(thought),
            None => match &delta.content {
                Some(content @ Content::Parts(_)) => Cow::Owned(content.thinking().collect()),
                _ => Cow::Borrowed(""),
            },
        }
    }

    /// The pieces of calls.
    pub fn calls(&self) -> &[ToolCall<'a>] {
        let delta = self.delta.as_ref();
        let calls = delta.and_then(|delta| delta.tool_calls.as_deref());
        calls.unwrap_or_default()
    }

    /// Why the answer ended, if this is its end. Some servers write an empty reason in chunks before it.
    pub fn finished(&self) -> Option<&str> {
        let reason = self.finish_reason.as_deref();
        reason.filter(|reason| !reason.is_empty())
    }
}
