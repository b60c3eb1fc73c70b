//! The built-in tools, each called in a run, with real files, processes and sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]
#![allow(
    clippy::too_many_lines,
    reason = "a table has as many rows as it needs"
)]

mod changing;
mod confined;
mod offered;
mod pages;
mod reading;
mod ruled;
mod running;
mod scene;
