//! The request of `POST /v1/chat/completions`.

use std::borrow::Cow;

use super::message::Message;
use super::tools::ToolChoice;
use crate::json::Json;
use crate::read_error::ReadError;

object! {
    /// The body of a request for a chat completion.
    ///
    /// Other fields (`temperature`, `stop`, `seed`, the old `functions` …) are in `unknown`.
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
        /// The conversation so far. Required.
        "messages" messages: Vec<Message<'a>>,
        /// The tools as JSON text; [`tools`](Self::tools) reads them.
        "tools" tools: Option<Json<'a>>,
        /// The tool choice.
        "tool_choice" tool_choice: Option<ToolChoice<'a>>,
        /// Whether a reply may contain several calls. Default: `true`.
        "parallel_tool_calls" parallel_tool_calls: Option<bool>,
        /// The format of the reply's text.
        "response_format" response_format: Option<ResponseFormat<'a>>,
        /// The number of replies. Default: 1.
        "n" n: Option<u64>,
        /// Whether the response is streamed.
        "stream" stream: Option<bool>,
        /// Options of the stream.
        "stream_options" stream_options: Option<StreamOptions<'a>>,
    }

    /// Options of a stream.
    pub struct StreamOptions<'a> {
        /// Whether a last chunk contains the usage.
        "include_usage" include_usage: Option<bool>,
    }

    /// The format of the reply's text.
    pub struct ResponseFormat<'a> {
        /// The kind: `text`, `json_object`, `json_schema`.
        "type" kind: Option<Cow<'a, str>>,
        /// The schema, with its name.
        "json_schema" json_schema: Option<Json<'a>>,
    }
}

impl ChatCompletionRequest<'_> {
    /// Returns the definitions of the tools, each as JSON text, so that an invalid one does not affect the others.
    ///
    /// # Errors
    /// Returns an error if the tools are not a list. Line and column are relative to the list.
    pub fn tools(&self) -> Result<Vec<Json<'_>>, ReadError> {
        let Some(tools) = &self.tools else {
            return Ok(Vec::new());
        };
        tools.read_field().map_err(|error| error.under("tools"))
    }

    /// Removes everything about tools, also the old `functions` and `function_call`, and known fields that are `null`.
    pub fn remove_tools(&mut self) {
        (self.tools, self.tool_choice, self.parallel_tool_calls) = (None, None, None);
        self.unknown.remove("functions");
        self.unknown.remove("function_call");
        self.unknown.forget_nulls();
    }

    /// Returns whether the response is streamed.
    pub fn is_streamed(&self) -> bool {
        self.stream == Some(true)
    }

    /// Returns whether the stream ends with the usage.
    pub fn includes_usage(&self) -> bool {
        let options = self.stream_options.as_ref();
        options.and_then(|options| options.include_usage) == Some(true)
    }
}
