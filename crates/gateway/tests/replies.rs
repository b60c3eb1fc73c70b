//! The reply of a model, read and given to a client.
//!
//! Random replies and random servers are drawn from numbers; a failure names it. To play that one alone:
//! `GATEWAY_CASE=<number> cargo test -p plaincall-gateway replies`. To play more or fewer: `GATEWAY_CASES=<count>`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod back;
mod calls;
mod chaos;
pub(crate) mod chunks;
mod conversations;
pub(crate) mod expected;
mod long;
mod memory;
pub(crate) mod model;
mod places;
mod repaired;
mod spec;
pub(crate) mod table;
mod waiting;
mod whole;
