//! `plaincall run` on real processes: in a pipe, on a pseudo-terminal, and what is left of its tools afterwards.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod documents;
mod examples;
mod pipe;
mod processes;
mod record;
mod scene;
mod terminal;
