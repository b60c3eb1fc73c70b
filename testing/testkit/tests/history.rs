//! History and results (`spec/history.md`): its examples, and what must hold for any calls and any results.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

mod any_calls;
mod any_results;
mod definition;
