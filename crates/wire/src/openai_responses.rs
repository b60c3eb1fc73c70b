//! `OpenAI`'s Responses API: requests, responses, and the events of a streamed response.
//!
//! - [`ResponsesRequest`]: the request.
//! - [`Item`]: an item of a request's input or of a response's output.
//! - [`Response`]: the response.
//! - [`ResponseEvent`]: the data of an event of a streamed response.
//!
//! [`read_error`](crate::openai::read_error) also reads errors of this API.

mod event;
mod item;
mod request;
mod response;

pub use event::ResponseEvent;
pub use item::{Content, Item, Part};
pub use request::{Input, ReasoningOptions, ResponsesRequest, ResponsesTool, TextOptions};
pub use response::{Response, Usage, UsageDetails};
