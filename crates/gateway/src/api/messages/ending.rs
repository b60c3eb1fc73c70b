//! How a reply ends: its stop reason and usage.

use plaincall_wire::Unknown;
use plaincall_wire::anthropic::Usage;
use plaincall_wire::openai::{self, ChatCompletion};

/// The finish reason of some model servers for a stop sequence.
const STOP_SEQUENCE: &str = "stop_sequence";
const CONTEXT_EXCEEDED: &str = "model_context_window_exceeded";

/// Collects the stop reason and the usage, which arrives after it.
#[derive(Clone, Debug, Default)]
pub(super) struct Ending {
    /// The client's stop sequences.
    stop_sequences: Vec<String>,
    /// The stop sequence at which the model server stopped.
    stop_sequence: Option<String>,
    /// The model server's finish reason.
    reason: String,
    is_refusal: bool,
    /// The finish reason of the reply.
    finish_reason: String,
    usage: Usage<'static>,
}

impl Ending {
    pub(super) fn new(stop_sequences: Vec<String>) -> Self {
        Self {
            stop_sequences,
            usage: Usage {
                input_tokens: Some(0),
                output_tokens: Some(0),
                ..Usage::default()
            },
            ..Self::default()
        }
    }

    /// Takes the finish reason of a complete answer.
    pub(super) fn of_completion(&mut self, completion: &ChatCompletion<'_>) {
        for choice in completion.choices() {
            self.of_choice(choice.finish_reason.as_deref(), &choice.unknown);
        }
    }

    /// Takes the model server's finish reason, and its other fields: vLLM names the stop sequence in one of them.
    pub(super) fn of_choice(&mut self, reason: Option<&str>, fields: &Unknown<'_>) {
        if let Some(reason) = reason {
            reason.clone_into(&mut self.reason);
        }
        let stop = fields.get("stop_reason");
        let stop = stop.and_then(|json| json.read::<String>().ok());
        if let Some(stop) = stop.filter(|stop| self.stop_sequences.contains(stop)) {
            self.stop_sequence = Some(stop);
        }
    }

    /// The model declined to answer.
    pub(super) fn refusal(&mut self) {
        self.is_refusal = true;
    }

    /// Takes the finish reason of the reply.
    pub(super) fn finish(&mut self, reason: &str) {
        reason.clone_into(&mut self.finish_reason);
    }

    /// Takes the usage. Cached input tokens are counted separately in this API.
    pub(super) fn usage(&mut self, usage: &openai::Usage<'_>) {
        let input = usage.prompt_tokens.unwrap_or_default();
        let cached = usage.cached_tokens().min(input);
        self.usage = Usage {
            input_tokens: Some(input - cached),
            cache_creation_input_tokens: Some(0),
            cache_read_input_tokens: Some(cached),
            output_tokens: Some(usage.completion_tokens.unwrap_or_default()),
            ..Usage::default()
        };
    }

    pub(super) fn stop_reason(&self) -> &'static str {
        match self.finish_reason.as_str() {
            "tool_calls" | "function_call" => "tool_use",
            "length" if self.reason == CONTEXT_EXCEEDED => CONTEXT_EXCEEDED,
            "length" => "max_tokens",
            "content_filter" => "refusal",
            _ if self.is_refusal => "refusal",
            _ if self.stop_sequence.is_some() || self.reason == STOP_SEQUENCE => STOP_SEQUENCE,
            _ => "end_turn",
        }
    }

    /// Returns the stop sequence, if it is the reason.
    pub(super) fn stop_sequence(&self) -> Option<&str> {
        let stop = self.stop_sequence.as_deref();
        stop.filter(|_| self.stop_reason() == STOP_SEQUENCE)
    }

    pub(super) fn total_usage(&self) -> &Usage<'static> {
        &self.usage
    }
}
