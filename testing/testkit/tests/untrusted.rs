//! Untrusted text: the properties of `spec/untrusted.md`, and a table of attacks.

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by a panic"
)]

mod attacks;
mod definition;
mod dictionary;
mod disguises;
mod echoes;
mod prompt;
mod prompt_texts;
