//! An example of a conversation.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// A question as a person asks it, the call that answers it, the output of the call, and the answer. Without a tool, a question
/// that needs no call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields, default)]
pub struct FewShotExample {
    /// The question of a person.
    pub question: String,
    /// The tool that is called. Absent if the question needs no call.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// The arguments of the call.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub arguments: Map<String, Value>,
    /// The output of the call.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub result: String,
    /// The answer of the model at the end.
    pub answer: String,
}
