//! The Anthropic Messages API, complete and streamed, for clients that send messages and read text,
//! thinking, usage and stop reasons.
//!
//! - [`MessagesRequest`]: the request.
//! - [`MessageResponse`]: the complete response.
//! - [`StreamEvent`]: the data of an event of a streamed response.
//!
//! [`read_error`](crate::openai::read_error) also reads errors of this API.

mod content;
mod request;
mod response;
mod stream;

pub use content::{Content, ContentBlock};
pub use request::{Message, MessagesRequest};
pub use response::{MessageResponse, Usage};
pub use stream::{BlockDelta, StreamEvent, StreamUpdate};
