//! Counts of the rows and calls so far: progress and error rates.

use std::fmt;
use std::time::{Duration, Instant};

use plaincall_reply::extract::{Row, RowCounts};

use crate::output::{is_quiet, write_stderr};
use crate::status::columns;
use crate::terminal::human::{count, time};

/// How often the progress is shown.
const INTERVAL: Duration = Duration::from_millis(100);

/// Counts of rows, calls and diagnostics.
pub(super) struct Summary {
    begun: Instant,
    shown: Instant,
    is_shown: bool,
    bytes: usize,
    counts: RowCounts,
}

impl Summary {
    pub(super) fn new() -> Self {
        let now = Instant::now();
        Self {
            begun: now,
            shown: now,
            is_shown: false,
            bytes: 0,
            counts: RowCounts::default(),
        }
    }

    /// Adds a line, with its row if it has one, and returns its number.
    pub(super) fn add(&mut self, row: Option<&Row>, bytes: usize) -> usize {
        self.counts.add(row);
        self.bytes += bytes;
        self.counts.rows
    }

    pub(super) const fn has_invalid_rows(&self) -> bool {
        self.counts.failed_rows > 0
    }

    /// Shows the progress in one row, on a terminal.
    pub(super) fn show_progress(&mut self) {
        if self.shown.elapsed() < INTERVAL {
            return;
        }
        self.shown = Instant::now();
        if is_quiet() || columns().is_none() {
            return;
        }
        self.is_shown = true;
        let megabytes = self.bytes / 1_000_000;
        write_stderr(format_args!(
            "\r{}, {}, {megabytes} MB, {}\u{1b}[K",
            count(self.counts.rows, "line"),
            count(self.counts.calls, "call"),
            time(self.begun.elapsed())
        ));
    }

    pub(super) fn clear_progress(&self) {
        if self.is_shown {
            write_stderr(format_args!("\r\u{1b}[K"));
        }
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RowCounts {
            rows,
            failed_rows: invalid,
            calls,
            ..
        } = self.counts;
        let rejected = calls - self.counts.may_run;
        write!(
            formatter,
            "{}, {} invalid{}; {}, {rejected} that may not run{}",
            count(rows, "line"),
            invalid,
            Rate(invalid, rows),
            count(calls, "call"),
            Rate(rejected, calls),
        )?;
        let mut codes: Vec<(&str, usize)> = self
            .counts
            .codes
            .iter()
            .map(|(c, &n)| (c.as_str(), n))
            .collect();
        codes.sort_by_key(|&(_, count)| std::cmp::Reverse(count));
        for (place, (code, count)) in codes.into_iter().enumerate() {
            let separator = if place == 0 { "; diagnostics: " } else { ", " };
            write!(formatter, "{separator}{code} {count}{}", Rate(count, calls))?;
        }
        Ok(())
    }
}

/// A part of a whole, in percent.
struct Rate(usize, usize);

impl fmt::Display for Rate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(part, whole) = *self;
        // Tenths of a percent.
        match (part.saturating_mul(1000) + whole / 2).checked_div(whole) {
            Some(rate) if part > 0 => write!(formatter, " ({}.{} %)", rate / 10, rate % 10),
            _ => Ok(()),
        }
    }
}
