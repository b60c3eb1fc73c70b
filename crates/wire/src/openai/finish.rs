//! Finish reasons, as named by many servers, and whether a request makes them ambiguous.

use plaincall_names::FinishReason;

use crate::json::Json;

/// Maps a finish reason to one of the API: `stop`, `length`, `tool_calls`, `content_filter` or
/// `function_call`, ignoring case. Clients reject other reasons or treat them as a normal end, so unknown
/// reasons become `length`: the reply may be incomplete.
pub fn api_finish_reason(reason: &str) -> &'static str {
    match FinishReason::of(reason) {
        // The API treats a stop sequence as a normal end, but it may be in the middle of a call.
        FinishReason::Stop | FinishReason::StopSequence => "stop",
        FinishReason::ToolCalls => "tool_calls",
        FinishReason::FunctionCall => "function_call",
        FinishReason::ContentFilter => "content_filter",
        FinishReason::Length | FinishReason::Other => "length",
    }
}

/// Returns whether a request with these fields sets stop sequences: then a natural end may be in the middle of a call. Some servers
/// have further fields that begin with `stop`.
pub fn sets_stop_sequences<'f, 'j: 'f>(
    fields: impl IntoIterator<Item = (&'f str, &'f Json<'j>)>,
) -> bool {
    let mut fields = fields.into_iter();
    fields.any(|(name, value)| name.starts_with("stop") && value.is_given())
}
