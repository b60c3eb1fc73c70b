//! Server-sent events, the format `text/event-stream` of the HTML standard (WHATWG, section "Server-sent events").
//!
//! ```
//! use plaincall_wire::sse::{Decoder, encode_comment, encode_data};
//!
//! let mut stream = Vec::new();
//! encode_comment("still there", &mut stream);
//! encode_data("{\"n\":1}", &mut stream);
//!
//! let mut decoder = Decoder::new();
//! let mut data = Vec::new();
//! for chunk in stream.chunks(5) {
//!     for event in decoder.feed(chunk) {
//!         data.push(event?.data.into_owned());
//!     }
//! }
//! assert_eq!(data, ["{\"n\":1}"]);
//! # Ok::<(), plaincall_wire::sse::StreamError>(())
//! ```

mod decoder;
mod encoder;

pub use decoder::{Decoder, Event, Events, Limits, StreamError};
pub use encoder::{encode_comment, encode_data, encode_event};
