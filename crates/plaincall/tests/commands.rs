//! Command tools, with real processes.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod ending;
mod interpreted;
mod output;
mod running;
mod scene;
mod templates;
