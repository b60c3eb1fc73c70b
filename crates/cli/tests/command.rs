//! The command as a process: its input, its output and its exit status.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by a panic")]

mod bytes;
mod cases;
mod extract;
mod large;
mod mcp;
mod mistakes;
pub(crate) mod process;
mod quiet;
mod stopped;
mod terminal;
mod tools;
mod transcripts;
