//! The tests of the public interface, as one program.

#![allow(clippy::expect_used, reason = "a test fails by panicking")]

mod cycles;
mod examples;
mod failures;
mod messages;
mod reply;
