//! Ollama's API: requests, and replies streamed and complete.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod requests;
mod served;
mod spec;
pub(crate) mod strict;
