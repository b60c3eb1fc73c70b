//! The request of `POST /v1/responses`.

use std::borrow::Cow;

use super::item::Item;
use crate::json::Json;
use crate::read_error::ReadError;

object! {
    /// The body of a request. Sampling parameters and other fields are in `unknown`.
    pub struct ResponsesRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The first instructions, which precede the input.
        "instructions" instructions: Option<Cow<'a, str>>,
        /// The conversation so far. Required.
        "input" input: Input<'a>,
        /// The tools as JSON text; [`tools`](Self::tools) reads them.
        "tools" tools: Option<Json<'a>>,
        /// The tool choice: a word or an object.
        "tool_choice" tool_choice: Option<Json<'a>>,
        /// Whether a reply may contain several calls. Default: `true`.
        "parallel_tool_calls" parallel_tool_calls: Option<bool>,
        /// Options of the reply's text.
        "text" text: Option<TextOptions<'a>>,
        /// Options of the reasoning.
        "reasoning" reasoning: Option<ReasoningOptions<'a>>,
        /// The maximum number of output tokens.
        "max_output_tokens" max_output_tokens: Option<u64>,
        /// The stored response that this request continues.
        "previous_response_id" previous_response_id: Option<Json<'a>>,
        /// The stored conversation that this request continues.
        "conversation" conversation: Option<Json<'a>>,
        /// The stored prompt that this request uses.
        "prompt" prompt: Option<Json<'a>>,
        /// Whether the response is created in the background.
        "background" background: Option<bool>,
        /// Whether the response is stored.
        "store" store: Option<bool>,
        /// Whether the response is streamed.
        "stream" stream: Option<bool>,
    }

    /// Options of the reply's text.
    pub struct TextOptions<'a> {
        /// Its format.
        "format" format: Option<Json<'a>>,
        /// Its verbosity: `low`, `medium` or `high`.
        "verbosity" verbosity: Option<Json<'a>>,
    }

    /// Options of the reasoning.
    pub struct ReasoningOptions<'a> {
        /// The effort: `minimal`, `low`, `medium`, `high`, or another word.
        "effort" effort: Option<Json<'a>>,
    }

    /// A tool in a request.
    pub struct ResponsesTool<'a> {
        /// The kind: `function`, `custom`, `namespace`, or a hosted tool such as `web_search`.
        "type" kind: Option<Cow<'a, str>>,
        /// The name.
        "name" name: Option<Cow<'a, str>>,
        /// The description for the model.
        "description" description: Option<Cow<'a, str>>,
        /// The tools of a namespace.
        "tools" tools: Option<Vec<Json<'a>>>,
        /// The format of a custom tool's input.
        "format" format: Option<Json<'a>>,
    }
}

text_or_list! {
    /// The input of a request: a text, or items.
    pub enum Input {
        /// A text, which is equivalent to one message of the user.
        Text,
        /// Messages, calls, outputs of calls, and other items.
        Items(Item) expected "a string or a list of items",
    }
}

impl ResponsesRequest<'_> {
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
}

impl Default for Input<'_> {
    /// An empty text.
    fn default() -> Self {
        Self::Text(Cow::Borrowed(""))
    }
}
