//! The worker with a real Restate server: `cargo xtask restate`.
#![allow(
    clippy::disallowed_methods,
    reason = "tests start processes and read their settings"
)]

mod cost;
mod definitions;
mod graphs;
mod killed;
mod server;
mod talks;
mod tools;
mod workers;
