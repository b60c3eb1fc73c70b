//! Anthropic's Messages.

mod call_id;
mod complete;
mod ending;
mod request;
mod streamed;

use plaincall_wire::anthropic::{ErrorBody, MessagesRequest};

use crate::api::encoder::Encoder;
use crate::api::messages::complete::CompleteMessage;
use crate::api::messages::ending::Ending;
use crate::api::messages::streamed::StreamedMessage;
use crate::api::{ClientRequest, Notes, split_index};
use crate::error::GatewayError;

#[derive(Clone, Debug)]
pub(crate) struct MessagesNotes {
    is_streamed: bool,
    model: String,
    /// Whether the client wants the model's reasoning.
    shows_thinking: bool,
    stop_sequences: Vec<String>,
}

pub(super) fn read(body: &[u8]) -> Result<ClientRequest<'_>, GatewayError> {
    let request: MessagesRequest<'_> =
        plaincall_wire::read(body).map_err(|error| GatewayError::unreadable_request(&error))?;
    let stops = request.stop_sequences.iter().flatten();
    let notes = MessagesNotes {
        is_streamed: request.stream == Some(true),
        model: request.model.as_deref().unwrap_or_default().to_owned(),
        shows_thinking: request::shows_thinking(&request),
        stop_sequences: stops.map(|stop| stop.clone().into_owned()).collect(),
    };
    Ok(ClientRequest {
        chat: request::chat_request(request)?,
        notes: Notes::Messages(notes),
    })
}

impl MessagesNotes {
    pub(super) fn encoder(self, word: &str) -> Box<dyn Encoder + Send> {
        let id = format!("msg_{word}");
        let ending = Ending::new(self.stop_sequences);
        if self.is_streamed {
            let message = StreamedMessage::new(id, self.model, self.shows_thinking, ending);
            Box::new(message)
        } else {
            let message = CompleteMessage::new(id, self.model, self.shows_thinking, ending);
            Box::new(message)
        }
    }
}

/// Converts a JSON Pointer to a tool. The tools of a request are converted one by one.
pub(super) fn tool_pointer(at: &str) -> String {
    let (index, rest) = split_index(at);
    let rest = rest.strip_prefix("/function").unwrap_or(rest);
    match rest.strip_prefix("/parameters") {
        Some(rest) => format!("/tools/{index}/input_schema{rest}"),
        None => format!("/tools/{index}{rest}"),
    }
}

/// Returns the body of an error response.
pub(super) fn error_body(error: &GatewayError, request_id: Option<&str>) -> Vec<u8> {
    let mut body = error_object(error);
    if let Some(id) = request_id {
        body = body.request_id(id);
    }
    plaincall_wire::write_bytes(&body)
}

/// Converts an error. Clients choose an exception by the status, and show the type.
fn error_object(error: &GatewayError) -> ErrorBody<'_> {
    let kind = match error.status {
        401 => "authentication_error",
        402 => "billing_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        408 | 504 => "timeout_error",
        503 | 529 => "overloaded_error",
        500.. => "api_error",
        _ => "invalid_request_error",
    };
    ErrorBody::new(kind, error.message())
}
