//! The reasons with which model servers end a reply.

/// How a model server ended a reply, from one of the many words for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FinishReason {
    /// The model ended its reply.
    Stop,
    /// The model ended its reply with calls.
    ToolCalls,
    /// The model ended its reply with a call, in the older form of the API.
    FunctionCall,
    /// A text or token for which the request asked, maybe in the middle of a call.
    StopSequence,
    /// A limit of the length.
    Length,
    /// A filter, or the model declined to answer.
    ContentFilter,
    /// Any other reason. Servers have many words for failures.
    Other,
}

impl FinishReason {
    /// Interprets the finish reason of an API, ignoring case. `-` counts as `_`.
    ///
    /// ```
    /// use plaincall_names::FinishReason;
    ///
    /// assert_eq!(FinishReason::of("end_turn"), FinishReason::Stop);
    /// assert_eq!(FinishReason::of("MAX_TOKENS"), FinishReason::Length);
    /// assert_eq!(FinishReason::of("abort"), FinishReason::Other);
    /// ```
    pub fn of(reason: &str) -> Self {
        match reason.to_ascii_lowercase().replace('-', "_").as_str() {
            "stop" | "eos" | "eos_token" | "end_turn" | "complete" | "completed" => Self::Stop,
            "tool_calls" | "tool_call" | "tool_use" => Self::ToolCalls,
            "function_call" => Self::FunctionCall,
            "stop_sequence" | "stop_token" => Self::StopSequence,
            "length"
            | "max_tokens"
            | "max_output_tokens"
            | "model_length"
            | "limit"
            | "model_context_window_exceeded" => Self::Length,
            "content_filter" | "refusal" | "safety" | "recitation" | "sensitive" | "blocklist"
            | "prohibited_content" | "spii" => Self::ContentFilter,
            _ => Self::Other,
        }
    }
}
