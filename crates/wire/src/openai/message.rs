//! Messages and the calls in them.

use std::borrow::Cow;

use serde::Deserialize;
use serde::de::{Deserializer, Error};

use super::content::Content;
use crate::ToJson;
use crate::field::Field;
use crate::json::Json;

object! {
    /// A message of a conversation, of any role: one of a request's history, or a model's answer.
    pub struct Message<'a> {
        /// Who speaks: `system`, `developer`, `user`, `assistant`, `tool`, or the old `function`.
        "role" role: Option<Cow<'a, str>>,
        /// What is said. `null` where an assistant only calls tools.
        "content" content: Option<Content<'a>>,
        /// What a model says in place of an answer that it refuses.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// What a model thought, as `DeepSeek`, llama.cpp and others name it.
        "reasoning_content" reasoning_content: Option<Cow<'a, str>>,
        /// What a model thought, as vLLM, Ollama and `OpenRouter` name it.
        "reasoning" reasoning: Option<Cow<'a, str>>,
        /// Who speaks, among several of one role.
        "name" name: Option<Cow<'a, str>>,
        /// The calls of an assistant.
        "tool_calls" tool_calls: Option<Vec<ToolCall<'a>>>,
        /// The call whose result a message of role `tool` is.
        "tool_call_id" tool_call_id: Option<Cow<'a, str>>,
    }

    /// A call of a tool: whole in a message; in a stream a piece of one.
    pub struct ToolCall<'a> {
        /// Which call of the message a piece belongs to. Only in streams; some servers leave it out there too.
        "index" index: Option<u64>,
        /// The id, which the result names.
        "id" id: Option<Cow<'a, str>>,
        /// The kind: `function`, or `custom`, which is kept in `unknown`.
        "type" kind: Option<Cow<'a, str>>,
        /// The function that is called.
        "function" function: Option<CalledFunction<'a>>,
    }

    /// The function of a [`ToolCall`].
    pub struct CalledFunction<'a> {
        /// The name.
        "name" name: Option<Cow<'a, str>>,
        /// The arguments, or in a stream a piece of their text.
        "arguments" arguments: Option<CallArguments<'a>>,
    }
}

impl<'a> Message<'a> {
    /// A message with a role and a content.
    pub fn new(role: impl Into<Cow<'a, str>>, content: impl Into<Content<'a>>) -> Self {
        Self {
            role: Some(role.into()),
            content: Some(content.into()),
            ..Self::default()
        }
    }

    /// The role, or an empty text.
    pub fn role(&self) -> &str {
        self.role.as_deref().unwrap_or_default()
    }

    /// What the model thought, under either name.
    pub fn thought(&self) -> Option<&str> {
        let thought = self.reasoning_content.as_deref();
        thought.or(self.reasoning.as_deref())
    }

    /// The calls.
    pub fn calls(&self) -> &[ToolCall<'a>] {
        self.tool_calls.as_deref().unwrap_or_default()
    }
}

impl<'a> ToolCall<'a> {
    /// A whole call of a function. The arguments are the text of a JSON object.
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

    /// The name of the function, or an empty text.
    pub fn name(&self) -> &str {
        let function = self.function.as_ref();
        let name = function.and_then(|function| function.name.as_deref());
        name.unwrap_or_default()
    }

    /// The text of the arguments, or of their piece; empty without one.
    pub fn arguments(&self) -> &str {
        let function = self.function.as_ref();
        let arguments = function.and_then(|function| function.arguments.as_ref());
        arguments.map_or("", CallArguments::text)
    }
}

/// The arguments of a call. The API has a text that holds JSON; some clients and servers write the JSON itself.
#[derive(Clone, Debug, PartialEq)]
pub enum CallArguments<'a> {
    /// A text that holds JSON, or a piece of it.
    Text(Cow<'a, str>),
    /// JSON.
    Json(Json<'a>),
}

impl CallArguments<'_> {
    /// The text of the JSON, as the model wrote it: it may be wrong.
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
