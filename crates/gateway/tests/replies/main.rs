//! The reply of a model, read and given to a client.
//!
//! Random replies and random servers are drawn from numbers; a failure names it. To play that one alone:
//! `GATEWAY_CASE=<number> cargo test -p plaincall-gateway --test replies`. To play more or fewer: `GATEWAY_CASES=<count>`.
#![allow(
    clippy::disallowed_methods,
    reason = "GATEWAY_CASE replays one case, GATEWAY_CASES sets their number"
)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

mod back;
mod chaos;
mod chunks;
mod conversations;
mod expected;
mod late;
mod long;
mod memory;
mod model;
mod spec;
mod table;
mod whole;

/// The numbers of the cases that are played.
fn cases(usual: u64) -> std::ops::Range<u64> {
    if let Ok(case) = std::env::var("GATEWAY_CASE") {
        let case = case.parse().unwrap();
        return case..case + 1;
    }
    0..std::env::var("GATEWAY_CASES").map_or(usual, |count| count.parse().unwrap())
}

/// Names a number when its case fails.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was GATEWAY_CASE={}", self.0);
        }
    }
}
