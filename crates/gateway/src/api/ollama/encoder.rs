//! A reply as lines of JSON, or as one response.

use std::time::Duration;

use plaincall_wire::Json;
use plaincall_wire::ollama::{ChatResponse, Message, encode_line, time};
use plaincall_wire::openai::{
    CallArguments, ChatCompletion, ChatCompletionChunk, ReasoningField, ToolCall, Usage,
};

use crate::api::encoder::{Encoder, model_name};
use crate::api::ollama::{OllamaNotes, error_object, keep_alive};
use crate::error::GatewayError;

/// Writes a reply. Calls are sent whole, because their arguments are objects.
#[derive(Debug)]
pub(super) struct OllamaEncoder {
    notes: OllamaNotes,
    created_at: String,
    has_begun: bool,
    /// The message so far, or the pieces for the next line.
    message: Message<'static>,
    finish_reason: String,
    usage: Option<Usage<'static>>,
    elapsed: Option<Duration>,
    bytes: Vec<u8>,
}

impl OllamaEncoder {
    pub(super) fn new(notes: OllamaNotes, now: u64) -> Self {
        Self {
            notes,
            created_at: time(now),
            has_begun: false,
            message: Message::default(),
            finish_reason: String::new(),
            usage: None,
            elapsed: None,
            bytes: Vec::new(),
        }
    }

    /// Takes the message so far as a response.
    fn take_response(&mut self, is_done: bool) -> ChatResponse<'static> {
        let mut message = std::mem::take(&mut self.message);
        message.role = Some("assistant".into());
        message.content.get_or_insert_default();
        message
            .tool_calls
            .iter_mut()
            .flatten()
            .for_each(parse_arguments);
        ChatResponse {
            model: Some(self.notes.model.clone().into()),
            created_at: Some(self.created_at.clone().into()),
            message: Some(message),
            done: Some(is_done),
            ..ChatResponse::default()
        }
    }

    fn set_model(&mut self, name: Option<&str>) {
        if let Some(name) = model_name(name) {
            name.clone_into(&mut self.notes.model);
        }
    }

    /// Writes a line with the pieces, if the response is streamed.
    fn flush(&mut self) {
        if self.notes.is_streamed && self.message != Message::default() {
            let line = self.take_response(false);
            encode_line(&line, &mut self.bytes);
            self.has_begun = true;
        }
    }
}

/// Replaces the text of a call's arguments with their JSON. A call of a model server may have any text.
fn parse_arguments(call: &mut ToolCall<'static>) {
    let json = Json::parse(call.arguments()).map(Json::into_owned);
    if let (Some(function), Ok(json)) = (&mut call.function, json) {
        function.arguments = Some(CallArguments::Json(json));
    }
}

impl Encoder for OllamaEncoder {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        if !self.has_begun && !chunk.choices().is_empty() {
            self.set_model(chunk.model.as_deref());
        }
    }

    fn content(&mut self, text: &str) {
        self.flush();
        let content = self.message.content.get_or_insert_default();
        content.to_mut().push_str(text);
        self.flush();
    }

    fn reasoning(&mut self, _name: ReasoningField, text: &str) {
        if self.notes.shows_thinking {
            self.flush();
            let thinking = self.message.thinking.get_or_insert_default();
            thinking.to_mut().push_str(text);
            self.flush();
        }
    }

    fn refusal(&mut self, text: &str) {
        self.content(text);
    }

    fn call(&mut self, index: u64, id: &str, name: &str) {
        self.flush();
        let mut call = ToolCall::new(id.to_owned(), name.to_owned(), String::new());
        call.kind = None;
        if let Some(function) = &mut call.function {
            function.unknown.set("index", Json::new(&index));
        }
        self.message.tool_calls.get_or_insert_default().push(call);
    }

    fn arguments(&mut self, _index: u64, piece: &str) {
        let call = self.message.tool_calls.iter_mut().flatten().last();
        let function = call.and_then(|call| call.function.as_mut());
        let arguments = function.and_then(|function| function.arguments.as_mut());
        if let Some(CallArguments::Text(text)) = arguments {
            text.to_mut().push_str(piece);
        }
    }

    fn finish(&mut self, reason: &str) {
        self.flush();
        // The API has no reason of its own for calls.
        let reason = match reason {
            "tool_calls" | "function_call" => "stop",
            other => other,
        };
        reason.clone_into(&mut self.finish_reason);
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        self.usage = Some(usage.clone().into_owned());
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn answer(&mut self, completion: ChatCompletion<'_>) {
        self.set_model(completion.model.as_deref());
    }

    fn elapsed(&mut self, elapsed: Duration) {
        self.elapsed = Some(elapsed);
    }

    fn done(&mut self) {
        let mut response = self.take_response(true);
        response.done_reason = Some(std::mem::take(&mut self.finish_reason).into());
        if let Some(elapsed) = self.elapsed {
            let elapsed = u64::try_from(elapsed.as_nanos()).ok();
            (response.total_duration, response.eval_duration) = (elapsed, elapsed);
            // The time until the model writes is not known.
            (response.load_duration, response.prompt_eval_duration) = (Some(0), Some(0));
        }
        if let Some(usage) = &self.usage {
            response.prompt_eval_count = Some(usage.prompt_tokens.unwrap_or_default());
            response.eval_count = Some(usage.completion_tokens.unwrap_or_default());
        }
        if self.notes.is_streamed {
            encode_line(&response, &mut self.bytes);
            self.has_begun = true;
        } else {
            self.bytes = plaincall_wire::write_bytes(&response);
        }
    }

    fn error(&mut self, error: &GatewayError) {
        if self.notes.is_streamed {
            if self.has_begun {
                self.flush();
            }
            encode_line(&error_object(error), &mut self.bytes);
        }
    }

    fn keep_alive(&self, _is_holding: bool) -> Vec<u8> {
        keep_alive()
    }
}
