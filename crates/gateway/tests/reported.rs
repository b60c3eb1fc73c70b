//! Facts about clients and servers from public reports: the bytes that one side sends, and those that the other side gets.
//! A new fact is one row of a table.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod conversations;
mod fields;
mod native_calls;
mod random;
mod servers;
