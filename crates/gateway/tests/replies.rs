//! A model's reply, parsed and sent to a client.
//!
//! Random replies and servers are numbered, and a failure reports the number. To run one of them:
//! `GATEWAY_CASE=<number> cargo test -p plaincall-gateway replies`. To run another number of cases:
//! `GATEWAY_CASES=<count>`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod arrived;
mod back;
mod calls;
mod chaos;
pub(crate) mod chunks;
mod conversations;
pub(crate) mod expected;
mod long;
mod memory;
pub(crate) mod model;
mod repaired;
mod slots;
mod spec;
pub(crate) mod table;
mod waiting;
mod whole;
