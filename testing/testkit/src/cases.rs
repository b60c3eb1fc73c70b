//! The numbers of a test's random cases.

#![allow(
    clippy::disallowed_methods,
    reason = "the environment selects the cases, or their number"
)]

use std::env;
use std::ops::Range;

/// Returns the numbers of the cases, `usual` from 0 by default. For `cases("GATEWAY", 100)`, the environment variable
/// `GATEWAY_CASE` selects one number, and `GATEWAY_CASES` sets how many. [`divisor`] divides the usual number.
///
/// # Panics
/// Panics if a variable is not a number.
pub fn cases(name: &str, usual: u64) -> Range<u64> {
    all_cases(name, usual.div_ceil(divisor()))
}

/// Like [`cases`], but [`divisor`] does not divide the number.
///
/// # Panics
/// Panics if a variable is not a number.
pub fn all_cases(name: &str, usual: u64) -> Range<u64> {
    if let Some(case) = number(&format!("{name}_CASE")) {
        return case..case + 1;
    }
    0..number(&format!("{name}_CASES")).unwrap_or(usual)
}

/// Returns by how much the cases of all tests are divided, 1 by default: the environment variable `CASES_DIVISOR`.
///
/// # Panics
/// Panics if the variable is not a number.
pub fn divisor() -> u64 {
    number("CASES_DIVISOR").unwrap_or(1).max(1)
}

fn number(variable: &str) -> Option<u64> {
    let text = env::var(variable).ok()?;
    let number = text.parse::<u64>();
    Some(number.unwrap_or_else(|error| panic!("{variable}={text}: {error}")))
}

/// Prints how to reproduce a case if it fails before this value is dropped.
#[derive(Debug)]
#[must_use]
pub struct Playing {
    name: &'static str,
    case: u64,
}

impl Playing {
    /// Begins the case with this number.
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
