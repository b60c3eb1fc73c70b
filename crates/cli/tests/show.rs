//! `plaincall show` for the logs in `records/`: one event per line, without numbers and checksums.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod data;
mod lines;
mod page;
pub(crate) mod scene;
mod timeline;
