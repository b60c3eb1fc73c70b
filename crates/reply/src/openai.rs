//! The calls of a document as an `OpenAI` `tool_calls` array.

use serde_json::{Value, json};

use crate::CallError;
use crate::Document;
use crate::ToolCall;

/// The calls of a document in the format of the `OpenAI` API.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct OpenAiCalls {
    /// The elements of the array `tool_calls`: `{"id", "type": "function", "function": {"name", "arguments"}}`, where
    /// `arguments` is the text of a JSON object.
    pub tool_calls: Vec<Value>,
    /// The invalid calls, which are not in the array.
    pub skipped: Vec<SkippedCall>,
}

/// An invalid call, which is not in the array.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct SkippedCall {
    /// The index in order of appearance, from 0.
    pub index: usize,
    /// The id.
    pub id: String,
    /// The reasons, one sentence each; at least one.
    pub reasons: Vec<String>,
}

/// Converts the calls of a document that may run to the `tool_calls` of the `OpenAI` API, and returns the others with reasons.
/// Nothing here can approve a call that is held, so read the document with a check
/// [without a gate](crate::ReplyCheck::without_gate).
///
/// Without definitions, the arguments of a block call are converted by coercion, and those of an emoji call are its `raw_args`
/// and `body`.
pub fn openai_calls(document: &Document) -> OpenAiCalls {
    let mut calls = OpenAiCalls {
        tool_calls: Vec::new(),
        skipped: Vec::new(),
    };
    for read in document.decided() {
        let call = &read.call;
        let reasons = match &read.decision {
            Err(CallError::Arguments(problems)) => {
                let messages = problems.iter().map(|problem| problem.message.clone());
                messages.collect()
            }
            Err(other) => vec![other.to_string()],
            Ok(Some(held)) => vec![held.to_string()],
            Ok(None) => {
                let arguments = read.value().or_else(|| line_and_body(call));
                calls.tool_calls.push(json!({
                    "id": call.id,
                    "type": "function",
                    "function": {
                        "name": call.name,
                        "arguments": arguments.unwrap_or_default().to_string(),
                    },
                }));
                continue;
            }
        };
        calls.skipped.push(SkippedCall {
            index: call.index,
            id: call.id.clone(),
            reasons,
        });
    }
    calls
}

/// Returns the arguments of an emoji call without a definition: its line and its body. `None` for a block call.
pub(crate) fn line_and_body(call: &ToolCall) -> Option<Value> {
    let raw_args = call.raw_args.as_deref()?;
    Some(json!({"raw_args": raw_args, "body": call.body().unwrap_or_default()}))
}
