//! Requests with tools that the server passes to the model, instead of tools in the prompt.

use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The conversation of a request that uses the server's own tool calls ([`ModelRequest::native`](super::ModelRequest)).
/// [`Agent`](crate::Agent) never sends one: `plaincall probe` compares both ways.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct NativeRequest {
    /// The tools.
    pub tools: Arc<[NativeTool]>,
    /// The messages, which replace those of the request.
    pub messages: Vec<NativeMessage>,
}

/// A tool, as the server gets it.
#[derive(Clone, Debug, PartialEq)]
pub struct NativeTool {
    /// Its name.
    pub name: String,
    /// Its description.
    pub description: String,
    /// The JSON Schema of its arguments.
    pub parameters: Value,
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
pub struct NativeCall {
    /// Its id.
    pub id: String,
    /// The name of the tool.
    pub name: String,
    /// The arguments as the model wrote them: usually the text of a JSON object, but not always.
    pub arguments: String,
}
