//! The server on real sockets, with a scripted server in the place of a model's.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod ends;
mod requests;
mod started;
