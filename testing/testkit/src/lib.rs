//! Shared parts of the tests of Plaincall: the oracles, splitters and examples of `plaincall-oracle`, random
//! tools and calls, a model's server that plays scripts.
//!
//! It uses the other crates through their public interfaces only, and is never published.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code: a panic is how a test fails"
)]

pub mod cases;
#[cfg(test)]
mod complexity;
pub mod digits;
pub mod json_streams;
pub mod model_server;
#[cfg(feature = "sockets")]
pub mod round_robin;
pub mod schema_calls;
pub mod strict_client;
pub mod untrusted;

pub use plaincall_oracle::{arbitrary_texts, examples, merged, oracle, plan_oracle, rendering};
