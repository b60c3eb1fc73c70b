//! All tests of the crate that use what is public, as one program.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

mod examples;
mod rings;
mod sentences;
