//! Anthropic's Messages: requests, and replies streamed and complete.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]
#![allow(
    clippy::needless_pass_by_value,
    clippy::too_many_lines,
    reason = "tables of JSON, and one rule after another"
)]

pub(crate) mod model;
mod replies;
mod requests;
mod serving;
mod spec;
pub(crate) mod strict;
