//! Every future of a run is dropped at its first, second, … poll: nothing is left behind, and the run continues.
#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod conversations;
mod left;
mod polls;
