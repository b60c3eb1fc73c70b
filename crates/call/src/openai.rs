//! The calls of a document as an `OpenAI` `tool_calls` array.

use serde_json::{Value, json};

use crate::call_error::CallError;
use crate::document::Document;
use crate::may_run::ReplyCheck;
use crate::stop::Stop;
use crate::tool::set::ToolSet;

/// A document's calls in the form of the `OpenAI` API.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenAiCalls {
    /// The elements of the array `tool_calls`: `{"id", "type": "function", "function": {"name", "arguments"}}`, where the
    /// arguments are the text of a JSON object.
    pub tool_calls: Vec<Value>,
    /// The calls that are wrong and therefore not in the array.
    pub skipped: Vec<SkippedCall>,
}

/// A call that is not in the array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkippedCall {
    /// Its place in the order of appearance, from 0.
    pub index: usize,
    /// Its id.
    pub id: String,
    /// Why it is left out, one sentence each; at least one.
    pub reasons: Vec<String>,
}

/// The good calls of a document as the `tool_calls` of the `OpenAI` API, and those that are left out with the reasons.
///
/// Left out is what `check` rejects or holds, and with `tools` what names none of them or does not fit its
/// definition. Without `tools` the arguments of a block call are what coercion makes of them, and those of an emoji call
/// are its `raw_args` and `body`.
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
                .map(|_| match call.raw_args() {
                    Some(raw_args) => {
                        json!({"raw_args": raw_args, "body": call.body().unwrap_or_default()})
                    }
                    None => call.arguments.to_value(),
                }),
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
