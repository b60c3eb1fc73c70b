//! The Anthropic Messages API, complete and streamed.
//!
//! - [`MessagesRequest`]: the request.
//! - [`MessageResponse`]: the complete response.
//! - [`StreamEvent`]: the data of an event of a streamed response, for reading; [`EventWriter`] writes events.
//! - [`ModelPage`], [`ErrorBody`].
//!
//! [`read_error`](crate::openai::read_error) also reads errors of this API.

mod content;
mod error;
mod event_writer;
mod models;
mod request;
mod response;
mod stream;

pub use content::{Content, ContentBlock, Source};
pub use error::{ErrorBody, ErrorObject};
pub use event_writer::{EventWriter, error_event, ping_event};
pub use models::{Model, ModelPage};
pub use request::{
    Message, MessagesRequest, OutputConfig, OutputFormat, Thinking, Tool, ToolChoice,
};
pub use response::{MessageResponse, Usage};
pub use stream::{BlockDelta, StreamEvent, StreamUpdate};
