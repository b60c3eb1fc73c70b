//! The worker with a real Restate server: `cargo xtask restate`.
#![allow(
    clippy::disallowed_methods,
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests start processes and read their settings, and fail by a panic"
)]

#[cfg(target_os = "linux")]
mod clocks;
#[cfg(target_os = "linux")]
mod connections;
mod cost;
mod definitions;
mod every_key;
mod graphs;
mod kept;
mod killed;
mod replaced;
mod server;
mod setting;
mod talks;
mod tools;
mod workers;
