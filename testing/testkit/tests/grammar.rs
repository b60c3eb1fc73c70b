//! Grammars and the parser agree: what an engine accepts is valid, and valid calls are accepted.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

mod bounds;
mod engine;
mod engines;
mod gbnf;
mod string_limits;
mod valid_calls;
mod walks;
