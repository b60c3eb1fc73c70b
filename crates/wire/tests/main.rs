//! All tests of the crate that use its public interface, in one program.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod chunk_writer;
mod cost;
mod json_text;
mod pages;
mod payloads;
mod read_errors;
mod repeated_chunk;
mod round_trip;
mod sse;
mod streams;
mod surrogates;
