//! Comparisons of models with known skills.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod cases;
mod effects;
mod failing;
mod references;
mod results;
