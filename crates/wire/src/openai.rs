//! The `OpenAI` API, as implemented by `OpenAI` and compatible servers: chat completions, models, errors.
//!
//! - [`ChatCompletionRequest`]: the request.
//! - [`ChatCompletion`]: the complete response.
//! - [`ChatCompletionChunk`]: a chunk of a streamed response, for reading; [`ChunkWriter`] writes chunks;
//!   [`RepeatedChunk`] recognizes those that differ only in their text.
//! - [`ModelList`], [`ErrorBody`], [`read_error`].
//! - [`api_finish_reason`]: maps the finish reasons of other servers to those of the API.

mod chunk;
mod chunk_writer;
pub mod constrained;
mod content;
mod error;
mod finish;
mod message;
mod models;
mod repeated_chunk;
mod request;
mod response;
mod tools;

pub use chunk::{ChatCompletionChunk, ChunkChoice, Delta};
pub use chunk_writer::{ChunkHead, ChunkWriter, ReasoningField, done_event, error_event};
pub use content::{Content, ContentPart};
pub use error::{ErrorBody, ErrorObject, read_error};
pub use finish::{api_finish_reason, sets_stop_sequences};
pub use message::{CallArguments, CalledFunction, Message, ToolCall};
pub use models::{Model, ModelList, ModelRequest};
pub use repeated_chunk::RepeatedChunk;
pub use request::{ChatCompletionRequest, ResponseFormat, StreamOptions};
pub use response::{ChatCompletion, Choice, Usage};
pub use tools::{
    AllowedTools, Choose, FunctionDefinition, NamedTool, Tool, ToolChoice, ToolChoiceObject,
};

/// The field of a message with a call in its old form, which the types here keep as an unknown field.
pub const OLD_CALL: &str = "function_call";
