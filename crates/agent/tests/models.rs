//! Models: clients over sockets, scripts, recorded replies and retries.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod answers;
mod connecting;
mod constrained;
mod failures;
mod native;
mod received;
mod recorded;
mod requests;
mod retries;
mod scripts;
