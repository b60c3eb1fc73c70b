//! Why an answer ended, in the words of many servers.

/// Whether an answer that ends with this reason has all that the model wanted to write. Servers have many words for what
/// went wrong, so what is not known is no such reason.
///
/// ```
/// use plaincall_wire::openai::is_natural_end;
///
/// assert!(is_natural_end("stop"));
/// assert!(!is_natural_end("insufficient_system_resource"));
/// ```
pub fn is_natural_end(reason: &str) -> bool {
    matches!(
        reason,
        "stop" | "tool_calls" | "function_call" | "eos" | "eos_token" | "end_turn"
    )
}

/// Whether this reason says that a limit of length cut the answer off.
///
/// ```
/// use plaincall_wire::openai::is_cut_by_length;
///
/// assert!(is_cut_by_length("length"));
/// assert!(!is_cut_by_length("content_filter"));
/// ```
pub fn is_cut_by_length(reason: &str) -> bool {
    matches!(
        reason,
        "length" | "max_tokens" | "model_length" | "model_context_window_exceeded"
    )
}
