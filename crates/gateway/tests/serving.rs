//! The server on real sockets, with a scripted model server.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod abuse;
mod bodies;
mod chaos;
mod configuration;
mod connections;
mod constrained;
mod draining;
mod ends;
mod instances;
mod key_limits;
mod origins;
mod passing;
mod preflight;
mod reports;
mod requests;
mod retries;
mod slow;
pub(crate) mod test_gateway;
mod upstreams;
