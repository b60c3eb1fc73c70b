//! What the tests of Plaincall share: naive oracles, splitters, the examples of the specification.
//!
//! It uses the other crates through their public interfaces only, and is never published.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code: a panic is how a test fails"
)]

pub mod cases;
pub mod digits;
pub mod examples;
pub mod foreign;
pub mod json_streams;
pub mod merged;
pub mod model_server;
pub mod oracle;
pub mod plan_oracle;
#[cfg(feature = "sockets")]
pub mod round_robin;
pub mod schema_calls;
pub mod soup;
pub mod split;
pub mod strict_client;
