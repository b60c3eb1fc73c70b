//! The table.

use std::fmt;

use crate::kept::Kept;

/// Returns the name of a chunk size.
pub fn size_title(size: Option<usize>) -> String {
    size.map_or_else(|| "whole".to_owned(), |size| size.to_string())
}

/// The lines above the rows.
pub const HEAD: &str = "\
| payload | chunk | parser, format | arguments | MB/s | speed-up of Plaincall | allocations/KB | calls kept | text kept |
| --- | --- | --- | --- | --- | --- | --- | --- | --- |";

/// A row of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub payload: &'static str,
    pub size: Option<usize>,
    pub parser: String,
    /// Whether arguments are streamed.
    pub streams: bool,
    /// The bytes of the text in the parser's own format.
    pub bytes: usize,
    pub seconds: f64,
    /// Plaincall's time for the same payload, in the block syntax.
    pub plaincall: f64,
    /// `None` if they cannot be counted.
    pub allocations: Option<u64>,
    pub kept: Kept,
}

impl Row {
    /// Returns the speed-up of Plaincall on the same payload.
    pub fn ratio(&self) -> f64 {
        self.seconds / self.plaincall
    }
}

impl fmt::Display for Row {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = float(self.bytes);
        let allocations = self.allocations.map_or_else(
            || "not counted".to_owned(),
            |count| significant(float(usize::try_from(count).unwrap_or(usize::MAX)) * 1e3 / bytes),
        );
        write!(
            formatter,
            "| {} | {} | {} | {} | {} | {} | {allocations} | {} |",
            self.payload,
            size_title(self.size),
            self.parser,
            if self.streams { "arrive" } else { "whole" },
            significant(bytes / self.seconds / 1e6),
            significant(self.ratio()),
            self.kept,
        )
    }
}

/// Formats three digits, and no fraction above a hundred.
fn significant(number: f64) -> String {
    if number >= 100.0 {
        format!("{number:.0}")
    } else if number >= 10.0 {
        format!("{number:.1}")
    } else {
        format!("{number:.2}")
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a speed needs three digits, not sixteen"
)]
fn float(count: usize) -> f64 {
    count as f64
}
