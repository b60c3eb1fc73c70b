//! Messages and the calls in them.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::content::Content;
use crate::ToJson;
use crate::field::{Field, Loose};
use crate::json::Json;

object! {
    /// A message of a conversation with any role: from a request's history, or a model's response.
    pub struct Message<'a> {
        /// The role: `system`, `developer`, `user`, `assistant`, `tool`, or the old `function`.
        "role" role: Option<Cow<'a, str>>,
        /// The content. `null` if an assistant only calls tools.
        "content" content: Option<Content<'a>>,
        /// The text with which the model declines to answer.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// Reasoning, as named by `DeepSeek`, llama.cpp and others.
        "reasoning_content" reasoning_content: Option<Cow<'a, str>>,
        /// Reasoning, as named by vLLM, Ollama and `OpenRouter`.
        "reasoning" reasoning: Option<Cow<'a, str>>,
        /// The name of the author, among several with one role.
        "name" name: Option<Cow<'a, str>>,
        /// The calls of an assistant.
        "tool_calls" tool_calls: Option<Vec<ToolCall<'a>>>,
        /// The id of the call, in a message with the role `tool`.
        "tool_call_id" tool_call_id: Option<Cow<'a, str>> as Loose<'a>,
    }

    /// A call of a tool: complete in a message; a piece of one in a stream.
    pub struct ToolCall<'a> {
        /// The index of the call, in streams. Some servers omit it, or write it as a text.
        "index" index: Option<u64> as Loose<'a>,
        /// The id, which the result refers to. Some servers write it as a number.
        "id" id: Option<Cow<'a, str>> as Loose<'a>,
        /// The kind: `function`, or `custom`, whose fields are in `unknown`.
        "type" kind: Option<Cow<'a, str>>,
        /// The called function.
        "function" function: Option<CalledFunction<'a>>,
    }

    /// The function of a [`ToolCall`].
    pub struct CalledFunction<'a> {
        /// The name.
        "name" name: Option<Cow<'a, str>>,
        /// The arguments, or a piece of their text in a stream.
        "arguments" arguments: Option<CallArguments<'a>>,
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

    /// Returns the role, or an empty text.
    pub fn role(&self) -> &str {
        self.role.as_deref().unwrap_or_default()
    }

    /// Returns the reasoning under either name.
    pub fn thought(&self) -> Option<&str> {
        let thought = self.reasoning_content.as_deref();
        thought.or(self.reasoning.as_deref())
    }

    /// Returns the calls.
    pub fn calls(&self) -> &[ToolCall<'a>] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

impl<'a> ToolCall<'a> {
    /// Creates a complete call of a function. The arguments are the text of a JSON object.
    pub fn new(
        id: impl Into<Cow<'a, str>>,
        name: impl Into<Cow<'a, str>>,
        arguments: impl Into<Cow<'a, str>>,
    ) -> Self {
        Self {
            id: Some(id.into()),
            kind: Some("function".into()),
            function: Some(CalledFunction {
                name: Some(name.into()),
                arguments: Some(CallArguments::Text(arguments.into())),
                ..CalledFunction::default()
            }),
            ..Self::default()
        }
    }

    /// Returns the name of the function, or an empty text.
    pub fn name(&self) -> &str {
        let function = self.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        name.unwrap_or_default()
    }

    /// Returns the text of the arguments, or of their piece; may be empty.
    pub fn arguments(&self) -> &str {
        let function = self.function.as_ref();
        let arguments = function.and_then(|function| function.arguments.as_ref());
        arguments.map_or("", CallArguments::text)
    }
}

/// The arguments of a call. The API defines a string that contains JSON; some clients and servers send the JSON itself.
#[derive(Clone, Debug, PartialEq)]
pub enum CallArguments<'a> {
    /// A string that contains JSON, or a piece of it.
    Text(Cow<'a, str>),
    /// JSON.
    Json(Json<'a>),
}

impl CallArguments<'_> {
    /// Returns the text of the JSON as written by the model, which may be invalid.
    pub fn text(&self) -> &str {
        match self {
            Self::Text(text) => text,
            Self::Json(json) => json.text(),
        }
    }
}

impl<'de> Field<'de> for CallArguments<'de> {
    type Owned = CallArguments<'static>;

    fn read<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?;
        if raw.get().starts_with('"') {
            let mut text = serde_json::Deserializer::from_str(raw.get());
            return Cow::read(&mut text)
                .map(Self::Text)
                .map_err(D::Error::custom);
        }
        Json::parse(raw.get())
            .map(Self::Json)
            .map_err(D::Error::custom)
    }

    fn into_owned(self) -> Self::Owned {
        match self {
            Self::Text(text) => CallArguments::Text(Cow::Owned(text.into_owned())),
            Self::Json(json) => CallArguments::Json(json.into_owned()),
        }
    }
}

impl ToJson for CallArguments<'_> {
    fn write_json(&self, out: &mut Vec<u8>) {
        match self {
            Self::Text(text) => text.write_json(out),
            Self::Json(json) => json.write_json(out),
        }
    }
}
