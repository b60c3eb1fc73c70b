//! Why an answer ended, in the words of many servers.

/// Whether an answer that ends with this reason has all that the model wanted to write. Servers have many words for what
/// went wrong, so what is not known is no such reason.
pub fn is_natural_end(reason: &str) -> bool {
    matches!(
        reason,
        "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn"
    )
}

/// Whether this reason says that a limit of length cut the answer off.
pub fn is_cut_by_length(reason: &str) -> bool {
    matches!(
        reason,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded"
    )
}

/// The reason of the API that says what this reason of a server says: `stop`, `length`, `tool_calls`, `content_filter` or
/// `function_call`. Case makes no difference. Clients refuse any other reason, or take it for a normal end, so an unknown
/// one is `length`: the answer is not known to be complete.
pub fn api_finish_reason(reason: &str) -> &'static str {
    match reason.to_ascii_lowercase().as_str() {
        // A stop sequence is a normal end for the API, but it may stand in the middle of a call.
        "stop" | "eos" | "eos_token" | "end_turn" | "stop_sequence" | "stop_token" => "stop",
        "tool_calls" | "tool_call" | "tool_use" => "tool_calls",
        "function_call" => "function_call",
        "content_filter" | "refusal" | "safety" | "recitation" | "sensitive" | "blocklist"
        | "prohibited_content" | "spii" => "content_filter",
        _ => "length",
    }
}
