//! The `OpenAI` API, as `OpenAI` and the many servers that follow it speak it: chat completions, models, errors.
//!
//! - [`ChatCompletionRequest`]: what a client asks.
//! - [`ChatCompletion`]: the whole answer.
//! - [`ChatCompletionChunk`]: a piece of an answer that is streamed, as it is read; [`ChunkWriter`] writes them.
//! - [`ModelList`], [`ErrorBody`], [`read_error`].
//! - [`is_natural_end`]: why an answer ended.

mod chunk;
mod chunk_writer;
mod content;
mod error;
mod finish;
mod message;
mod models;
mod request;
mod response;
mod tools;

pub use chunk::{ChatCompletionChunk, ChunkChoice, Delta};
pub use chunk_writer::{ChunkHead, ChunkWriter, ReasoningField, done_event, error_event};
pub use content::{Content, ContentPart};
pub use error::{ErrorBody, ErrorObject, read_error};
pub use finish::{api_finish_reason, is_cut_by_length, is_natural_end};
pub use message::{CallArguments, CalledFunction, Message, ToolCall};
pub use models::{Model, ModelList};
pub use request::{ChatCompletionRequest, ResponseFormat, StreamOptions};
pub use response::{ChatCompletion, Choice, Usage};
pub use tools::{
    AllowedTools, Choose, FunctionDefinition, NamedTool, Tool, ToolChoice, ToolChoiceObject,
};
