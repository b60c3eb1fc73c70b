//! The table.

use std::fmt;

use crate::kept::Kept;

/// One line of the table.
#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) payload: &'static str,
    pub(crate) size: Option<usize>,
    /// Millions of bytes a second.
    pub(crate) speed: f64,
    pub(crate) loop_speed: f64,
    pub(crate) ratio: f64,
    /// Allocations for a thousand bytes of payload.
    pub(crate) allocations: f64,
}

/// The name of a chunk size.
pub(crate) fn size_title(size: Option<usize>) -> String {
    size.map_or_else(|| "whole".to_owned(), |size| size.to_string())
}

/// The line above the rows.
pub(crate) fn head() -> String {
    format!(
        "{:<18} {:>6} {:>9} {:>10} {:>6} {:>10} {:>15} {:>10}",
        "payload", "chunk", "MB/s", "loop MB/s", "ratio", "allocs/KB", "calls kept", "text kept"
    )
}

/// A row and what its reading kept.
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
        write!(
            formatter,
            "{:<18} {:>6} {:>9.1} {:>10.1} {:>6.2} {:>10.3} {calls:>15} {text:>10}",
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
