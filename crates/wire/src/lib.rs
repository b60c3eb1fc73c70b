//! Types for the requests and responses of the `OpenAI` and Anthropic APIs, and server-sent events, without I/O.
//!
//! - [`sse`]: bytes in any pieces to events, and events to bytes.
//! - [`openai`]: chat completions, whole and as a stream; models; errors.
//! - [`anthropic`]: messages, whole and as a stream.
//! - [`read_replies`]: replies that were recorded; [`page_title`]: what comes in the place of an answer.
//! - [`read()`] and [`write()`]: JSON text to these types and back.
//!
//! A type names the fields that Plaincall looks at. Every other field is kept as its JSON text in
//! [`Unknown`], and [`write()`] puts all fields back in the order in which they were read: fields of newer clients and
//! servers are passed on. Parsed values borrow from the text; `into_owned` copies them.
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
pub mod openai;
mod page;
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

/// Reads a JSON text as one of the types of this crate. Texts are borrowed where they hold no escapes.
///
/// The last value of a duplicate field counts. Bytes that are not UTF-8, and halves of surrogate pairs, are
/// U+FFFD in the texts of known fields.
///
/// # Errors
/// Returns an error with field and position if the text is not JSON, or a known field has the wrong type.
pub fn read<'a, T: Deserialize<'a>>(json: &'a [u8]) -> Result<T, ReadError> {
    serde_json::from_slice(json).map_err(|error| ReadError::new(&error))
}

/// Writes one of the types of this crate as JSON text, its fields in the order in which they were read.
pub fn write(value: &(impl ToJson + ?Sized)) -> String {
    String::from_utf8(write_bytes(value)).unwrap_or_default()
}

/// Like [`write()`], as bytes.
pub fn write_bytes(value: &(impl ToJson + ?Sized)) -> Vec<u8> {
    // Grown from nothing, it would move a dozen times.
    let mut out = Vec::with_capacity(512);
    value.write_json(&mut out);
    out
}

/// Like [`write()`], appended to `out`.
pub fn write_to(value: &(impl ToJson + ?Sized), out: &mut Vec<u8>) {
    value.write_json(out);
}
