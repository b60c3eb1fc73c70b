//! A reply as a response, streamed or complete.

use plaincall_reply::Stop;
use plaincall_wire::Json;
use plaincall_wire::openai::{ChatCompletionChunk, ReasoningField, Usage as ChatUsage};
use plaincall_wire::openai_responses::{Item, Response, ResponseEvent, Usage};
use serde_json::{Value, json};

use crate::api::encoder::{Encoder, model_name};
use crate::api::responses::ResponsesNotes;
use crate::api::responses::output::{Events, Output, Piece};
use crate::api::responses::tools::ToolName;
use crate::error::GatewayError;

/// Writes a reply as a response. Both forms have the same items.
#[derive(Debug)]
pub(super) struct ResponsesEncoder {
    notes: ResponsesNotes,
    id: String,
    created: u64,
    has_begun: bool,
    output: Output,
    events: Events,
    /// The reason why the response is incomplete.
    incomplete: Option<&'static str>,
    usage: Option<Usage<'static>>,
}

impl ResponsesEncoder {
    pub(super) fn new(notes: ResponsesNotes, word: &str, now: u64) -> Self {
        Self {
            id: format!("resp_{word}"),
            created: now,
            has_begun: false,
            output: Output::new(word.to_owned()),
            events: Events::new(notes.is_streamed),
            incomplete: None,
            usage: None,
            notes,
        }
    }

    /// Writes the first events.
    fn begin_response(&mut self) {
        for kind in ["response.created", "response.in_progress"] {
            let response = self.response("in_progress", Vec::new());
            self.about(kind, response);
        }
    }

    fn ensure_begun(&mut self) {
        if self.notes.is_streamed && !self.has_begun {
            self.begin_response();
            self.has_begun = true;
        }
    }

    fn about(&mut self, kind: &'static str, response: Response<'static>) {
        self.events.write(
            kind,
            ResponseEvent {
                response: Some(response),
                ..ResponseEvent::default()
            },
        );
    }

    fn response(&self, status: &'static str, output: Vec<Item<'static>>) -> Response<'static> {
        let incomplete = self.incomplete.filter(|_| status == "incomplete");
        Response {
            id: Some(self.id.clone().into()),
            object: Some("response".into()),
            created_at: Some(Json::new(&self.created)),
            status: Some(status.into()),
            error: Some(Json::default()),
            incomplete_details: Some(match incomplete {
                Some(reason) => Json::new(&json!({"reason": reason})),
                None => Json::default(),
            }),
            model: Some(self.notes.model.clone().into()),
            output: Some(output),
            usage: None,
            unknown: self.notes.options.clone(),
        }
    }

    fn text(&mut self, piece: Piece, text: &str) {
        self.ensure_begun();
        self.output.text(piece, text, &mut self.events);
    }
}

impl Encoder for ResponsesEncoder {
    fn begin(&mut self, chunk: &ChatCompletionChunk<'_>) {
        let names_answer = chunk.id.as_deref().is_some_and(|id| !id.is_empty());
        if !self.has_begun && (names_answer || !chunk.choices().is_empty()) {
            if let Some(name) = model_name(chunk.model.as_deref()) {
                name.clone_into(&mut self.notes.model);
            }
            self.ensure_begun();
        }
    }

    fn content(&mut self, text: &str) {
        self.text(Piece::Text, text);
    }

    fn reasoning(&mut self, _name: ReasoningField, text: &str) {
        self.text(Piece::Reasoning, text);
    }

    fn refusal(&mut self, text: &str) {
        self.text(Piece::Refusal, text);
    }

    fn call(&mut self, _index: u64, id: &str, name: &str) {
        self.ensure_begun();
        let tool = self.notes.names.get(name).cloned();
        let tool = tool.unwrap_or_else(|| ToolName {
            namespace: None,
            name: name.to_owned(),
            is_custom: false,
        });
        self.output.call(id, tool, &mut self.events);
    }

    fn arguments(&mut self, _index: u64, piece: &str) {
        self.output.arguments(piece, &mut self.events);
    }

    fn finish(&mut self, reason: &str) {
        self.ensure_begun();
        self.incomplete = match reason {
            "content_filter" => Some("content_filter"),
            reason if Stop::from_finish_reason(reason) == Stop::Length => Some("max_output_tokens"),
            _ => None,
        };
        let status = self.incomplete.map_or("completed", |_| "incomplete");
        self.output.end(status, &mut self.events);
    }

    fn usage(&mut self, usage: &ChatUsage<'_>) {
        self.usage = Some(usage.into());
    }

    fn has_begun(&self) -> bool {
        self.has_begun
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.events.bytes)
    }

    fn done(&mut self) {
        let (kind, status) = match self.incomplete {
            None => ("response.completed", "completed"),
            Some(_) => ("response.incomplete", "incomplete"),
        };
        let output = self.output.take();
        let mut response = self.response(status, output);
        // Clients such as opencode repeat the request without it.
        let usage = self.usage.take();
        response.usage = Some(usage.unwrap_or_else(|| (&ChatUsage::default()).into()));
        if self.notes.is_streamed {
            self.about(kind, response);
        } else {
            self.events.bytes = plaincall_wire::write_bytes(&response);
        }
    }

    fn error(&mut self, error: &GatewayError) {
        if !self.notes.is_streamed {
            return;
        }
        if !self.has_begun {
            self.begin_response();
        }
        self.output.end("incomplete", &mut self.events);
        let output = self.output.take();
        let mut response = self.response("failed", output);
        let code = error.body.code.as_ref();
        let code = code.and_then(|code| code.read::<String>().ok());
        let code = code.or_else(|| error.body.kind.as_deref().map(str::to_owned));
        let error = json!({"code": code.map(Value::from), "message": error.message()});
        response.error = Some(Json::new(&error));
        self.about("response.failed", response);
    }
}
