//! Ollama's `/api/chat`.

mod encoder;
mod request;

use plaincall_wire::ollama::{ChatRequest, ErrorBody};

use crate::api::encoder::Encoder;
use crate::api::ollama::encoder::OllamaEncoder;
use crate::api::{ClientRequest, Notes};
use crate::error::GatewayError;

#[derive(Clone, Debug)]
pub(crate) struct OllamaNotes {
    is_streamed: bool,
    /// The requested model, if the model server names none.
    model: String,
    /// Whether the client gets the model's reasoning.
    shows_thinking: bool,
}

pub(super) fn read(body: &[u8]) -> Result<ClientRequest<'_>, GatewayError> {
    let request: ChatRequest<'_> =
        plaincall_wire::read(body).map_err(|error| GatewayError::unreadable_request(&error))?;
    let shows_thinking = request
        .think
        .as_ref()
        .is_none_or(|think| think.text() != "false");
    let chat = request::chat_request(request)?;
    let notes = OllamaNotes {
        is_streamed: chat.is_streamed(),
        model: chat.model.as_deref().unwrap_or_default().to_owned(),
        shows_thinking,
    };
    Ok(ClientRequest {
        chat,
        notes: Notes::Ollama(notes),
    })
}

impl OllamaNotes {
    pub(super) fn encoder(self, now: u64) -> Box<dyn Encoder + Send> {
        Box::new(OllamaEncoder::new(self, now))
    }
}

fn error_object(error: &GatewayError) -> ErrorBody<'_> {
    ErrorBody {
        error: Some(error.message().into()),
        ..ErrorBody::default()
    }
}

/// Returns the body of an error response.
pub(super) fn error_body(error: &GatewayError) -> Vec<u8> {
    plaincall_wire::write_bytes(&error_object(error))
}

/// Returns what keeps a connection open: a blank before the next line, which readers of JSON skip.
pub(super) fn keep_alive() -> Vec<u8> {
    b" ".to_vec()
}
