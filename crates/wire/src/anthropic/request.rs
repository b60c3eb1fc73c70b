//! The request of `POST /v1/messages`.

use std::borrow::Cow;

use super::content::Content;
use crate::json::Json;

object! {
    /// The body of a request. Sampling parameters and other fields are in `unknown`.
    pub struct MessagesRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The maximum number of output tokens. The server requires it.
        "max_tokens" max_tokens: Option<u64>,
        /// The system prompt.
        "system" system: Option<Content<'a>>,
        /// The conversation so far.
        "messages" messages: Vec<Message<'a>>,
        /// The tools, each as JSON text, so that an invalid one does not affect the others. [`Tool`] is their type.
        "tools" tools: Option<Vec<Json<'a>>>,
        /// The tool choice.
        "tool_choice" tool_choice: Option<ToolChoice<'a>>,
        /// The texts at which the reply ends.
        "stop_sequences" stop_sequences: Option<Vec<Cow<'a, str>>>,
        /// The thinking configuration, a [`Thinking`].
        "thinking" thinking: Option<Json<'a>>,
        /// The configuration of the output, such as its format.
        "output_config" output_config: Option<OutputConfig<'a>>,
        /// Whether the response is streamed.
        "stream" stream: Option<bool>,
    }

    /// A tool of a request.
    pub struct Tool<'a> {
        /// The kind: `custom` or absent, or a tool that the server defines or runs.
        "type" kind: Option<Cow<'a, str>>,
        /// The name.
        "name" name: Option<Cow<'a, str>>,
        /// The description for the model.
        "description" description: Option<Cow<'a, str>>,
        /// The JSON Schema of its arguments.
        "input_schema" input_schema: Option<Json<'a>>,
        /// Whether arguments must match the schema.
        "strict" strict: Option<bool>,
        /// Whether the model sees the tool only after a result refers to it.
        "defer_loading" defer_loading: Option<bool>,
    }

    /// The tool choice.
    pub struct ToolChoice<'a> {
        /// The kind: `auto`, `any`, `tool`, `none`.
        "type" kind: Option<Cow<'a, str>>,
        /// The name of the tool, for the kind `tool`.
        "name" name: Option<Cow<'a, str>>,
        /// Whether a reply has at most one call.
        "disable_parallel_tool_use" disable_parallel_tool_use: Option<bool>,
    }

    /// The thinking configuration.
    pub struct Thinking<'a> {
        /// The kind: `enabled`, `adaptive`, `disabled`.
        "type" kind: Option<Cow<'a, str>>,
        /// Whether the client wants the thinking: `summarized`, `omitted`.
        "display" display: Option<Cow<'a, str>>,
    }

    /// The configuration of the output.
    pub struct OutputConfig<'a> {
        /// The format of the text.
        "format" format: Option<OutputFormat<'a>>,
    }

    /// The format of the text.
    pub struct OutputFormat<'a> {
        /// `json_schema`
        "type" kind: Option<Cow<'a, str>>,
        /// The schema.
        "schema" schema: Option<Json<'a>>,
    }

    /// A message of the conversation.
    pub struct Message<'a> {
        /// The role: `user` or `assistant`; `system` for an instruction in mid-conversation.
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
