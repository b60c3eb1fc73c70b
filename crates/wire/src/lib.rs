//! Types for the requests and responses of the APIs of `OpenAI`, Anthropic and Ollama, and server-sent events, without I/O.
//!
//! - [`sse`]: decodes and encodes event streams.
//! - [`openai`]: chat completions, complete and streamed; models; errors.
//! - [`anthropic`]: messages, complete and streamed. [`openai_responses`]: responses, complete and streamed.
//! - [`ollama`]: chats, complete and streamed.
//! - [`read_replies`]: reads recorded replies. [`page_title`]: detects web pages sent instead of a response.
//! - [`paths`]: the paths of the APIs.
//! - [`read()`] and [`write()`]: convert JSON text to these types and back.
//!
//! The types have the fields that Plaincall uses. Every other field is kept as its JSON text in
//! [`Unknown`], and [`write()`] writes all fields in their original order, so fields of newer clients and
//! servers are forwarded. Parsed values borrow from the text; `into_owned` copies them.
//!
//! Fields may be added in any version: build these structs with `..Default::default()`.
//!
//! ```
//! use plaincall_wire::openai::ChatCompletionRequest;
//! use plaincall_wire::{read, write};
//!
//! let body = br#"{"temperature":0.50,"messages":[{"role":"user","content":"hi","mood":"good"}],"model":"m"}"#;
//! let mut request: ChatCompletionRequest = read(body)?;
//! assert_eq!(request.messages[0].unknown.get("mood").map(|mood| mood.text()), Some("\"good\""));
//!
//! request.model = Some("other".into());
//! assert_eq!(
//!     write(&request),
//!     r#"{"temperature":0.50,"messages":[{"role":"user","content":"hi","mood":"good"}],"model":"other"}"#
//! );
//! # Ok::<(), plaincall_wire::ReadError>(())
//! ```

#![deny(clippy::indexing_slicing)]

#[macro_use]
mod object;
#[macro_use]
mod text_or_list;

pub mod anthropic;
mod field;
mod json;
pub mod ollama;
pub mod openai;
pub mod openai_responses;
mod page;
pub mod paths;
mod read_error;
mod recorded;
pub mod sse;
mod surrogates;
mod to_json;
mod unknown;

pub use json::Json;
pub use page::page_title;
pub use read_error::ReadError;
pub use recorded::{RecordedReply, ReplayError, read_replies};
pub use surrogates::{SurrogateJoiner, replace_lone_surrogates};
pub use to_json::ToJson;
pub use unknown::Unknown;

use serde::Deserialize;

/// Reads a JSON text as one of the types of this crate. Strings without escapes are borrowed.
///
/// The last value of a duplicate field counts. Bytes that are not UTF-8 and unpaired surrogates become
/// U+FFFD in the texts of known fields.
///
/// # Errors
/// Returns an error with field and position if the text is not JSON, or a known field has the wrong type.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ReadError> {
    serde_json::from_slice(json).map_err(|error| ReadError::new(&error))
}

/// Writes one of the types of this crate as JSON text, with its fields in their original order.
pub fn write(value: &(impl ToJson + ?Sized)) -> String {
    String::from_utf8(write_bytes(value)).unwrap_or_default()
}

/// Like [`write()`], as bytes.
pub fn write_bytes(value: &(impl ToJson + ?Sized)) -> Vec<u8> {
    // The initial capacity avoids many reallocations.
    let mut out = Vec::with_capacity(512);
    value.write_json(&mut out);
    out
}

/// Like [`write()`], appended to `out`.
pub fn write_to(value: &(impl ToJson + ?Sized), out: &mut Vec<u8>) {
    value.write_json(out);
}
