//! Every future of a run, dropped at its first, second, … poll: nothing is left, and the run goes on.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod conversations;
mod left;
mod polls;
