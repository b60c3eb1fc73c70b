//! The properties that `fuzz/` checks, as functions of bytes.
//!
//! Each is named after its fuzz target, and panics if the property does not hold. The tests run them on the inputs of the
//! corpus, so that these are checked without a fuzzer. This crate is never published.
#![allow(
    clippy::missing_panics_doc,
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code: a panic is how a property fails"
)]

mod agrees_with_oracle;
mod case;
mod chunking_does_not_matter;
mod coercion_loses_no_digit;
mod drawn;
mod escape_is_reversible;
mod event_stream;
mod gateway_reply;
mod gateway_request;
mod json_stream_equals_value;
#[path = "../../../crates/gateway/tests/replies/model.rs"]
#[allow(dead_code, reason = "the gateway's tests use all of it")]
mod model;
mod parse_untrusted;
mod render_then_parse;
mod rescue_loses_no_byte;
mod settings;
mod spans_tile;
mod wire_round_trip;

pub use agrees_with_oracle::agrees_with_oracle;
pub use chunking_does_not_matter::chunking_does_not_matter;
pub use coercion_loses_no_digit::coercion_loses_no_digit;
pub use escape_is_reversible::escape_is_reversible;
pub use event_stream::event_stream;
pub use gateway_reply::gateway_reply;
pub use gateway_request::gateway_request;
pub use json_stream_equals_value::json_stream_equals_value;
pub use parse_untrusted::parse_untrusted;
pub use render_then_parse::render_then_parse;
pub use rescue_loses_no_byte::rescue_loses_no_byte;
pub use spans_tile::spans_tile;
pub use wire_round_trip::wire_round_trip;

/// A check of bytes, which panics if they show that its property does not hold.
pub type Check = fn(&[u8]);

/// The properties, with the names of their targets.
pub const PROPERTIES: &[(&str, Check)] = &[
    ("agrees_with_oracle", agrees_with_oracle),
    ("chunking_does_not_matter", chunking_does_not_matter),
    ("coercion_loses_no_digit", coercion_loses_no_digit),
    ("escape_is_reversible", escape_is_reversible),
    ("event_stream", event_stream),
    ("gateway_reply", gateway_reply),
    ("gateway_request", gateway_request),
    ("json_stream_equals_value", json_stream_equals_value),
    ("parse_untrusted", parse_untrusted),
    ("render_then_parse", render_then_parse),
    ("rescue_loses_no_byte", rescue_loses_no_byte),
    ("spans_tile", spans_tile),
    ("wire_round_trip", wire_round_trip),
];
