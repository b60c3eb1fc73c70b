//! The numbers of the random cases that a test plays.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment selects the cases, or their number"
)]

use std::env;
use std::ops::Range;

/// The numbers that are played, `usual` from 0 unless the environment selects others. For `cases("GATEWAY", 100)`
/// `GATEWAY_CASE` is the one number to play, `GATEWAY_CASES` how many.
///
/// # Panics
/// If the variable is not a number.
pub fn cases(name: &str, usual: u64) -> Range<u64> {
    let number = |variable: String| {
        let text = env::var(&variable).ok()?;
        let number = text.parse::<u64>();
        Some(number.unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
    };
    match number(format!("{name}_CASE")) {
        Some(case) => case..case + 1,
        None => 0..number(format!("{name}_CASES")).unwrap_or(usual),
    }
}

/// Prints how to reproduce a case if it fails while this value lives.
#[derive(Debug)]
#[must_use]
pub struct Playing {
    name: &'static str,
    case: u64,
}

impl Playing {
    /// The case with this number is played.
    pub fn new(name: &'static str, case: u64) -> Self {
        Self { name, case }
    }
}

impl Drop for Playing {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("this was {}_CASE={}", self.name, self.case);
        }
    }
}
