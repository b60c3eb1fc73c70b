//! Interrupted runs that are resumed.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod cuts;
mod damaged_starts;
mod directory;
mod dropped;
mod echoes;
mod kinds;
mod left;
mod play;
mod random;
mod refused;
mod scene;
mod submitted;
mod words;
