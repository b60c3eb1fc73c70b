//! The APIs of clients.

pub(crate) mod chat;
pub(crate) mod encoder;
mod messages;
mod ollama;
mod responses;

use plaincall_wire::openai::{ChatCompletionRequest, ErrorBody};
use plaincall_wire::paths;

use crate::api::chat::ChatNotes;
use crate::api::encoder::Encoder;
use crate::api::messages::MessagesNotes;
use crate::api::ollama::OllamaNotes;
use crate::api::responses::ResponsesNotes;
use crate::error::GatewayError;
use crate::settings::ToolMode;

/// An API that clients use. A request in any of them becomes a chat completions request to the model server, and the
/// reply is written in its format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientApi {
    /// `OpenAI`'s chat completions.
    Chat,
    /// `OpenAI`'s Responses API.
    Responses,
    /// Anthropic's Messages.
    Messages,
    /// Ollama's `/api/chat`.
    Ollama,
}

impl ClientApi {
    pub(crate) const ALL: [Self; 4] = [Self::Chat, Self::Responses, Self::Messages, Self::Ollama];

    /// Returns the API whose requests are sent to this path.
    pub fn of_path(path: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|api| api.path() == path)
    }

    /// Returns the path of its requests.
    pub const fn path(self) -> &'static str {
        match self {
            Self::Chat => paths::CHAT,
            Self::Responses => paths::RESPONSES,
            Self::Messages => paths::MESSAGES,
            Self::Ollama => paths::OLLAMA_CHAT,
        }
    }

    /// Returns the API whose path is this one, or is above it.
    #[cfg(feature = "server")]
    pub(crate) fn above(path: &str) -> Option<Self> {
        let is_below = |api: &Self| {
            let rest = path.strip_prefix(api.path());
            rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        Self::ALL.into_iter().find(is_below)
    }

    /// Returns the body of an error response. Some APIs include the id of the request.
    pub fn error_body(self, error: &GatewayError, request_id: Option<&str>) -> Vec<u8> {
        match self {
            Self::Chat | Self::Responses => {
                plaincall_wire::write_bytes(&ErrorBody::new((*error.body).clone()))
            }
            Self::Messages => messages::error_body(error, request_id),
            Self::Ollama => ollama::error_body(error),
        }
    }

    /// Returns the content type of a stream.
    pub(crate) fn stream_type(self) -> &'static str {
        match self {
            Self::Chat | Self::Responses | Self::Messages => "text/event-stream",
            Self::Ollama => "application/x-ndjson",
        }
    }

    /// Returns what keeps the connection of a stream open before it has begun.
    #[cfg(feature = "server")]
    pub(crate) fn keep_alive(self) -> Vec<u8> {
        match self {
            Self::Chat | Self::Responses | Self::Messages => encoder::keep_alive_comment(),
            Self::Ollama => ollama::keep_alive(),
        }
    }

    /// Reads the body of a request. `mode` returns the mode of a model.
    pub(crate) fn read(
        self,
        body: &[u8],
        mode: impl Fn(&str) -> ToolMode,
    ) -> Result<ClientRequest<'_>, GatewayError> {
        match self {
            Self::Chat => chat::read(body),
            Self::Responses => responses::read(body, mode),
            Self::Messages => messages::read(body),
            Self::Ollama => ollama::read(body),
        }
    }
}

/// Splits a JSON Pointer into its first segment, an index, and the rest.
pub(crate) fn split_index(at: &str) -> (&str, &str) {
    let at = at.strip_prefix('/').unwrap_or_default();
    at.split_at(at.find('/').unwrap_or(at.len()))
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
    Messages(MessagesNotes),
    Ollama(OllamaNotes),
}

impl Notes {
    /// Converts a JSON Pointer into the tools of the chat completions request to one into the client's request.
    pub(crate) fn tool_pointer(&self, at: &str) -> String {
        match self {
            Self::Chat(_) | Self::Ollama(_) => format!("/tools{at}"),
            Self::Responses(notes) => notes.tool_pointer(at),
            Self::Messages(_) => messages::tool_pointer(at),
        }
    }

    /// Creates the encoder of the reply. `word` makes the id of the response unique; `now` is in seconds since 1970.
    pub(crate) fn encoder(self, word: &str, now: u64) -> Box<dyn Encoder + Send> {
        match self {
            Self::Chat(notes) => notes.encoder(word, now),
            Self::Responses(notes) => notes.encoder(word, now),
            Self::Messages(notes) => notes.encoder(word),
            Self::Ollama(notes) => notes.encoder(now),
        }
    }

    /// Returns whether arguments are an object, so that no part of them can be sent earlier.
    pub(crate) fn has_whole_arguments(&self) -> bool {
        matches!(self, Self::Ollama(_))
    }
}
