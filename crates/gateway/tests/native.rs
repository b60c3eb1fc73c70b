//! Native mode: the model server gets the tools, and its calls are returned unchanged.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod asked_again;
pub(crate) mod model;
mod other_apis;
mod rescued;
mod served;
mod unchanged;
