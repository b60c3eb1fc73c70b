//! `plaincall run` with real processes: in a pipe, on a pseudo-terminal, and the cleanup of tools.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "tests"
)]

mod agreement;
mod approvals;
mod controls;
mod crash;
pub(crate) mod documents;
mod echoes;
mod examples;
mod incomplete;
mod log;
mod pages;
mod pipe;
mod probe;
mod processes;
pub(crate) mod pseudo_terminal;
mod reasoning;
mod record;
mod resume;
pub(crate) mod scene;
mod talk;
mod terminal;
