//! The items of inputs and outputs.

use std::borrow::Cow;

use crate::json::Json;
use crate::openai::CallArguments;

content! {
    /// The content of an item: a text, or parts of several kinds.
    pub enum Content {
        /// A text.
        Text,
        /// Text, images, files and other parts.
        Parts(Part) expected "a string or a list of parts",
    }
}

object! {
    /// An item of a request's input or of a response's output. Its kind decides which fields it has.
    pub struct Item<'a> {
        /// The kind: `message` (also if missing), `function_call`, `function_call_output`, `custom_tool_call`,
        /// `custom_tool_call_output`, `reasoning`, `additional_tools` …
        "type" kind: Option<Cow<'a, str>>,
        /// The id of the item.
        "id" id: Option<Cow<'a, str>>,
        /// The status: `in_progress`, `completed` or `incomplete`.
        "status" status: Option<Cow<'a, str>>,
        /// The role of a message.
        "role" role: Option<Cow<'a, str>>,
        /// The id of a call, which its output refers to.
        "call_id" call_id: Option<Cow<'a, str>>,
        /// The namespace of the called tool.
        "namespace" namespace: Option<Cow<'a, str>>,
        /// The name of the called tool.
        "name" name: Option<Cow<'a, str>>,
        /// The arguments of a function call, a JSON text.
        "arguments" arguments: Option<CallArguments<'a>>,
        /// The input of a custom tool's call.
        "input" input: Option<Cow<'a, str>>,
        /// The output of a call.
        "output" output: Option<Content<'a>>,
        /// The summary of a reasoning.
        "summary" summary: Option<Vec<Part<'a>>>,
        /// The content of a message or a reasoning.
        "content" content: Option<Content<'a>>,
        /// The tools of an item of kind `additional_tools`.
        "tools" tools: Option<Json<'a>>,
    }

    /// A part of a content. Images and files are in `unknown`.
    pub struct Part<'a> {
        /// The kind: `input_text`, `output_text`, `reasoning_text`, `summary_text`, `refusal`, `input_image` …
        "type" kind: Option<Cow<'a, str>>,
        /// The text.
        "text" text: Option<Cow<'a, str>>,
        /// The text with which the model declines to answer.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// The annotations of a text.
        "annotations" annotations: Option<Json<'a>>,
        /// The probabilities of its tokens.
        "logprobs" logprobs: Option<Json<'a>>,
    }
}

impl Item<'_> {
    /// Returns the kind. An item without one is a message.
    pub fn kind(&self) -> &str {
        self.kind.as_deref().unwrap_or("message")
    }
}
