//! The table.

use std::fmt;

use crate::kept::Kept;

/// A row of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) payload: &'static str,
    pub(crate) size: Option<usize>,
    /// Millions of bytes per second.
    pub(crate) speed: f64,
    pub(crate) loop_speed: f64,
    pub(crate) ratio: f64,
    /// The speed of the search for the start marker, and the parser's share of it, for a text in one chunk.
    pub(crate) search: Option<(f64, f64)>,
    /// Allocations per thousand bytes of payload.
    pub(crate) allocations: f64,
}

/// Returns the name of a chunk size.
pub(crate) fn size_title(size: Option<usize>) -> String {
    size.map_or_else(|| "whole".to_owned(), |size| size.to_string())
}

/// Returns the line above the rows.
pub(crate) fn head() -> String {
    format!(
        "{:<18} {:>6} {:>9} {:>10} {:>6} {:>12} {:>6} {:>10} {:>15} {:>10}",
        "payload",
        "chunk",
        "MB/s",
        "loop MB/s",
        "ratio",
        "memmem MB/s",
        "ratio",
        "allocs/KB",
        "calls kept",
        "text kept"
    )
}

/// A row, and the share of the payload that was kept.
pub(crate) struct Line<'r>(pub(crate) &'r Row, pub(crate) &'r Kept);

impl fmt::Display for Line<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(row, kept) = self;
        let calls = format!("{}/{}", kept.calls, kept.calls_expected);
        let share = kept.text_share();
        let text = if share == 10_000 {
            "100 %".to_owned()
        } else {
            format!("{}.{:02} %", share / 100, share % 100)
        };
        let (search, share) = row.search.map_or_else(
            || ("-".to_owned(), "-".to_owned()),
            |(speed, share)| (format!("{speed:.1}"), format!("{share:.2}")),
        );
        write!(
            formatter,
            "{:<18} {:>6} {:>9.1} {:>10.1} {:>6.2} {search:>12} {share:>6} {:>10.3} {calls:>15} {text:>10}",
            row.payload,
            size_title(row.size),
            row.speed,
            row.loop_speed,
            row.ratio,
            row.allocations,
        )?;
        if kept.difference.is_some() {
            formatter.write_str("  LOST")?;
        }
        Ok(())
    }
}

/// Returns the line above the rows of values of growing length.
pub(crate) fn lengths_head(lengths: &[usize]) -> String {
    let lengths = lengths.iter().map(|length| length_title(*length));
    let lengths = lengths.map(|title| format!(" {title:>9}"));
    let lengths: String = lengths.collect();
    format!(
        "{:<18} {:>6}{lengths} {:>8} {:>8}",
        "one value", "chunk", "slowest", "longest"
    )
}

/// Returns the name of a value's length.
fn length_title(length: usize) -> String {
    match length {
        length if length % MIB == 0 => format!("{} MiB", length / MIB),
        length if length % KIB == 0 => format!("{} KiB", length / KIB),
        length => format!("{length} B"),
    }
}

const KIB: usize = 1 << 10;
const MIB: usize = 1 << 20;

/// The speeds of one dialect with values of growing length.
#[derive(Debug)]
pub(crate) struct Flatness {
    pub(crate) dialect: &'static str,
    pub(crate) size: Option<usize>,
    /// Millions of bytes per second, for each length.
    pub(crate) speeds: Vec<f64>,
}

impl Flatness {
    /// The slowest speed as a share of the fastest.
    pub(crate) fn slowest(&self) -> f64 {
        let slowest = self.speeds.iter().copied().fold(f64::INFINITY, f64::min);
        slowest / self.fastest()
    }

    /// The speed of the longest value as a share of the fastest.
    pub(crate) fn longest(&self) -> f64 {
        self.speeds.last().copied().unwrap_or_default() / self.fastest()
    }

    fn fastest(&self) -> f64 {
        self.speeds.iter().copied().fold(0.0, f64::max)
    }
}

impl fmt::Display for Flatness {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{:<18} {:>6}",
            self.dialect,
            size_title(self.size)
        )?;
        for speed in &self.speeds {
            write!(formatter, " {speed:>9.1}")?;
        }
        write!(
            formatter,
            " {:>8.2} {:>8.2}",
            self.slowest(),
            self.longest()
        )
    }
}
