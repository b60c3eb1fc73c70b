//! The APIs of clients.

pub(crate) mod chat;
pub(crate) mod encoder;
mod responses;

use plaincall_wire::openai::ChatCompletionRequest;

use crate::api::chat::ChatNotes;
use crate::api::encoder::Encoder;
use crate::api::responses::ResponsesNotes;
use crate::error::GatewayError;

/// An API that clients use. A request in any of them becomes a chat completions request to the model server, and the
/// reply is written in its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientApi {
    /// `OpenAI`'s chat completions.
    Chat,
    /// `OpenAI`'s Responses API.
    Responses,
}

impl ClientApi {
    const ALL: [Self; 2] = [Self::Chat, Self::Responses];

    /// Returns the API whose requests are sent to this path.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.path() == path)
    }

    /// Returns the path of its requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => "/v1/chat/completions",
            Self::Responses => "/v1/responses",
        }
    }

    /// Returns the paths of all APIs.
    #[cfg(feature = "server")]
    pub(crate) fn paths() -> String {
        Self::ALL.map(Self::path).join(", ")
    }

    /// Returns the body of an error response.
    pub fn error_body(self, error: &GatewayError) -> Vec<u8> {
        match self {
            Self::Chat => chat::error_body(error),
            Self::Responses => responses::error_body(error),
        }
    }

    /// Reads the body of a request.
    pub(crate) fn read(self, body: &[u8]) -> Result<ClientRequest<'_>, GatewayError> {
        match self {
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body),
        }
    }
}

/// A request of a client as a chat completions request, and what its reply needs besides.
pub(crate) struct ClientRequest<'r> {
    pub(crate) chat: ChatCompletionRequest<'r>,
    pub(crate) notes: Notes,
}

/// The parts of a request that an encoder needs.
#[derive(Clone, Debug)]
pub(crate) enum Notes {
    Chat(ChatNotes),
    Responses(ResponsesNotes),
}

impl Notes {
    /// Creates the encoder of the reply. `word` makes the id of the response unique; `now` is in seconds since 1970.
    pub(crate) fn encoder(self, word: &str, now: u64) -> Box<dyn Encoder + Send> {
        match self {
            Self::Chat(notes) => notes.encoder(word, now),
            Self::Responses(notes) => notes.encoder(word, now),
        }
    }
}
