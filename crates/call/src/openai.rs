//! The calls of a document as an `OpenAI` `tool_calls` array.

use serde_json::{Value, json};

use crate::call::ToolCall;
use crate::call_error::CallError;
use crate::document::Document;
use crate::may_run::ReplyCheck;
use crate::stop::Stop;
use crate::tool::set::ToolSet;

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

/// Converts the valid calls of a document to the `tool_calls` of the `OpenAI` API, and returns the others with reasons.
///
/// Calls that `check` rejects or holds are skipped; with `tools` also those of an unknown tool or with invalid
/// arguments. Without `tools`, the arguments of a block call are converted by coercion, and those of an emoji call are
/// its `raw_args` and `body`.
pub fn openai_calls(
    document: &Document,
    check: ReplyCheck,
    stop: Stop,
    tools: Option<&ToolSet>,
) -> OpenAiCalls {
    let mut calls = OpenAiCalls {
        tool_calls: Vec::new(),
        skipped: Vec::new(),
    };
    let mut check = check.without_gate();
    check.begin_reply();
    for call in document.calls() {
        let arguments = match tools {
            Some(tools) => check
                .bind(call, tools, stop)
                .map(|bound| bound.arguments.to_value()),
            None => check
                .may_run(call, None, stop)
                .map(|_| line_and_body(call).unwrap_or_else(|| call.arguments.to_value())),
        };
        match arguments {
            Ok(arguments) => calls.tool_calls.push(json!({
                "id": call.id,
                "type": "function",
                "function": {"name": call.name, "arguments": arguments.to_string()},
            })),
            Err(error) => calls.skipped.push(SkippedCall {
                index: call.index,
                id: call.id.clone(),
                reasons: match error {
                    CallError::Arguments(problems) => {
                        let messages = problems.into_iter().map(|problem| problem.message);
                        messages.collect()
                    }
                    other => vec![other.to_string()],
                },
            }),
        }
    }
    calls
}

/// Returns the arguments of an emoji call without a definition: its line and its body. `None` for a block call.
pub(crate) fn line_and_body(call: &ToolCall) -> Option<Value> {
    let raw_args = call.raw_args()?;
    Some(json!({"raw_args": raw_args, "body": call.body().unwrap_or_default()}))
}
