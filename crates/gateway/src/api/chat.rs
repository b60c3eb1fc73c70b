//! `OpenAI`'s chat completions.

pub(crate) mod complete;
pub(crate) mod streamed;

use plaincall_wire::openai::ChatCompletionRequest;

use crate::api::chat::complete::CompleteResponse;
use crate::api::chat::streamed::StreamedResponse;
use crate::api::encoder::Encoder;
use crate::api::{ClientRequest, Notes};
use crate::error::GatewayError;

#[derive(Clone, Debug)]
pub(crate) struct ChatNotes {
    is_streamed: bool,
    includes_usage: bool,
}

pub(super) fn read(body: &[u8]) -> Result<ClientRequest<'_>, GatewayError> {
    let chat: ChatCompletionRequest<'_> =
        plaincall_wire::read(body).map_err(|error| GatewayError::unreadable_request(&error))?;
    Ok(ClientRequest::chat(chat))
}

impl<'r> ClientRequest<'r> {
    pub(crate) fn chat(chat: ChatCompletionRequest<'r>) -> Self {
        let notes = ChatNotes {
            is_streamed: chat.is_streamed(),
            includes_usage: chat.includes_usage(),
        };
        Self {
            chat,
            notes: Notes::Chat(notes),
        }
    }
}

impl ChatNotes {
    pub(super) fn encoder(&self, word: &str, now: u64) -> Box<dyn Encoder + Send> {
        let id = format!("chatcmpl-{word}");
        if self.is_streamed {
            Box::new(StreamedResponse::new(id, now, self.includes_usage))
        } else {
            Box::new(CompleteResponse::new(id, now))
        }
    }
}
