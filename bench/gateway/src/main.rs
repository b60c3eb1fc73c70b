//! How many requests a second the gateway answers, and what it adds to each, beside a bare proxy of axum and reqwest and
//! beside no proxy at all. All are asked in turn, in one run, with the same bodies:
//!
//! `cargo run --release -p plaincall-bench-gateway [-- SECONDS]`
//!
//! Each request offers ten tools, each reply holds one call. The model's server, what stands between and the clients
//! share one machine, each with a runtime of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a measurement that fails is no measurement"
)]

mod asking;
mod servers;

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::asking::ask_for;
use crate::servers::{bare_proxy, gateway, model};

/// How often each is asked in turn.
const TURNS: usize = 5;

fn main() {
    let seconds: f64 = std::env::args()
        .nth(1)
        .map_or(1.0, |word| word.parse().expect("seconds"));
    let model = model();
    let ways = [
        ("no proxy", model),
        ("bare proxy", bare_proxy(model)),
        ("gateway", gateway(model)),
    ];
    println!(
        "{:<12} {:>12} {:>12} {:>14} {:>14}",
        "", "req/s, 32", "of bare", "median, 1 (µs)", "added (µs)"
    );
    let mut found = vec![(0.0_f64, f64::MAX); ways.len()];
    for _ in 0..TURNS {
        for (place, (_, address)) in ways.iter().enumerate() {
            let (rate, median) = measured(*address, Duration::from_secs_f64(seconds));
            let best = found.get_mut(place).expect("a place");
            *best = (best.0.max(rate), best.1.min(median));
        }
    }
    let direct = found.first().expect("a way").1;
    let bare = found.get(1).expect("a way").0;
    for ((name, _), (rate, median)) in ways.iter().zip(&found) {
        println!(
            "{name:<12} {rate:>12.0} {:>12.2} {median:>14.0} {:>14.0}",
            rate / bare,
            median - direct
        );
    }
}

/// The requests a second of 32 connections, and the median time of a request of one, in microseconds.
fn measured(address: SocketAddr, time: Duration) -> (f64, f64) {
    let begun = Instant::now();
    let times = ask_for(address, 32, time);
    #[allow(clippy::cast_precision_loss, reason = "far fewer than 2^52")]
    let rate = times.len() as f64 / begun.elapsed().as_secs_f64();
    let mut alone = ask_for(address, 1, time / 4);
    alone.sort_unstable();
    let median = alone.get(alone.len() / 2).expect("a time");
    (rate, median.as_secs_f64() * 1e6)
}
