//! The Responses API: requests, and replies streamed and complete.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

pub(crate) mod model;
mod output;
mod requests;
mod served;
pub(crate) mod spec;
pub(crate) mod strict_reader;
mod tool_kinds;
