//! Shared parts of Plaincall's tests: the oracles, splitters and examples of `plaincall-oracle`, random tools and
//! calls, and a scripted model server.
//!
//! This crate uses only the public interfaces of the other crates, and is never published.
#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "this crate is test code: a panic is how a test fails"
)]

pub mod allocations;
pub mod cases;
#[cfg(test)]
mod complexity;
pub mod digits;
pub mod json_streams;
pub mod model_server;
pub mod recordings;
#[cfg(feature = "sockets")]
pub mod round_robin;
pub mod schema_calls;
pub mod strict_client;
pub mod untrusted;

pub use plaincall_oracle::{arbitrary_texts, examples, merged, oracle, plan_oracle, rendering};
