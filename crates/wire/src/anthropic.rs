//! The Anthropic API: messages, whole and as a stream, as far as a client needs it that sends messages and reads text,
//! thoughts, usage and why an answer ended.
//!
//! - [`MessagesRequest`]: what a client asks.
//! - [`MessageResponse`]: the whole answer.
//! - [`StreamEvent`]: the data of an event of a streamed answer.
//!
//! Errors have the form that [`read_error`](crate::openai::read_error) reads too.

mod content;
mod request;
mod response;
mod stream;

pub use content::{Content, ContentBlock};
pub use request::{Message, MessagesRequest};
pub use response::{MessageResponse, Usage};
pub use stream::{BlockDelta, News, StreamEvent};
