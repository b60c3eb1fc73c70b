//! What a client asks of `POST /v1/chat/completions`.

use std::borrow::Cow;

use super::message::Message;
use super::tools::ToolChoice;
use crate::json::Json;
use crate::read_error::ReadError;

object! {
    /// The body of a request for a chat completion.
    ///
    /// Sampling and the like (`temperature`, `stop`, `seed`, the old `functions` …) are in `unknown`.
    ///
    /// ```
    /// use plaincall_wire::openai::{ChatCompletionRequest, Message};
    /// use plaincall_wire::{Json, write};
    ///
    /// let mut request = ChatCompletionRequest {
    ///     model: Some("qwen3".into()),
    ///     messages: vec![Message::new("user", "Hello.")],
    ///     stream: Some(true),
    ///     ..ChatCompletionRequest::default()
    /// };
    /// request.unknown.set("temperature", Json::new(&0.2));
    /// assert_eq!(
    ///     write(&request),
    ///     r#"{"model":"qwen3","messages":[{"role":"user","content":"Hello."}],"stream":true,"temperature":0.2}"#
    /// );
    /// ```
    pub struct ChatCompletionRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The conversation so far; a request without it is refused.
        "messages" messages: Vec<Message<'a>>,
        /// The tools, as they were written; [`tools`](Self::tools) reads them.
        "tools" tools: Option<Json<'a>>,
        /// Which tool the model shall call.
        "tool_choice" tool_choice: Option<ToolChoice<'a>>,
        /// Whether an answer may hold several calls. Default: yes.
        "parallel_tool_calls" parallel_tool_calls: Option<bool>,
        /// The form of the answer's text.
        "response_format" response_format: Option<ResponseFormat<'a>>,
        /// How many answers to give. Default: one.
        "n" n: Option<u64>,
        /// Whether the answer comes as a stream.
        "stream" stream: Option<bool>,
        /// What the stream holds.
        "stream_options" stream_options: Option<StreamOptions<'a>>,
    }

    /// What the stream of an answer holds.
    pub struct StreamOptions<'a> {
        /// Whether a last chunk contains the usage.
        "include_usage" include_usage: Option<bool>,
    }

    /// The form of the answer's text.
    pub struct ResponseFormat<'a> {
        /// The kind: `text`, `json_object`, `json_schema`.
        "type" kind: Option<Cow<'a, str>>,
        /// The schema, with its name.
        "json_schema" json_schema: Option<Json<'a>>,
    }
}

impl ChatCompletionRequest<'_> {
    /// The definitions of the tools that are offered, each as its JSON text: one that is odd does not spoil the others.
    ///
    /// # Errors
    /// The tools are not a list. Line and column count within them.
    pub fn tools(&self) -> Result<Vec<Json<'_>>, ReadError> {
        let Some(tools) = &self.tools else {
            return Ok(Vec::new());
        };
        tools.read_field().map_err(|error| error.under("tools"))
    }

    /// Whether the answer comes as a stream.
    pub fn is_streamed(&self) -> bool {
        self.stream == Some(true)
    }

    /// Whether the stream ends with the usage.
    pub fn includes_usage(&self) -> bool {
        let options = self.stream_options.as_ref();
        options.and_then(|options| options.include_usage) == Some(true)
    }
}
