//! Requests with tools that the server passes to the model, instead of tools in the prompt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The conversation of a request that uses the server's own tool calls ([`ModelRequest::native`](super::ModelRequest)).
/// [`Agent`](crate::Agent) never sends one: `plaincall probe` compares both ways.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct NativeRequest {
    /// The tools.
    pub tools: Arc<[NativeTool]>,
    /// The messages, which replace those of the request.
    pub messages: Vec<NativeMessage>,
}

impl NativeRequest {
    /// Creates a request with these tools and messages.
    pub fn new(tools: impl Into<Arc<[NativeTool]>>, messages: Vec<NativeMessage>) -> Self {
        let tools = tools.into();
        Self { tools, messages }
    }
}

/// A tool, as the server gets it.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NativeTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
}

impl NativeTool {
    /// Creates a tool with this name, this description and this JSON Schema of its arguments.
    pub fn new(name: impl Into<String>, description: impl Into<String>, parameters: Value) -> Self {
        Self {
            name: name.into(),
            description: description.into(),
            parameters,
        }
    }
}

/// A message of a [`NativeRequest`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NativeMessage {
    /// The system prompt.
    System(String),
    /// A message of the user.
    User(String),
    /// A reply of the model.
    Assistant {
        /// Its text.
        text: String,
        /// Its calls.
        calls: Vec<NativeCall>,
    },
    /// The result of a call.
    Result {
        /// The id of the call.
        id: String,
        /// The result, or the error.
        text: String,
    },
}

/// A call that a server has parsed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct NativeCall {
    /// Its id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: usually the text of a JSON object, but not always.
    pub arguments: String,
}

impl NativeCall {
    /// Creates a call with this id, the name of its tool and the text of its arguments.
    pub fn new(
        id: impl Into<String>,
        name: impl Into<String>,
        arguments: impl Into<String>,
    ) -> Self {
        Self {
            id: id.into(),
            name: name.into(),
            arguments: arguments.into(),
        }
    }
}
