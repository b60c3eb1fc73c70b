//! The controlling terminal: its size, and input of keys and lines.

use crate::platform::terminal::{size_of_errors, size_of_output};

pub(crate) use crate::platform::terminal::{Keys, SavedMode, Tty};

/// The size of a terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// Returns the size of the terminal on standard output.
    pub(crate) fn of_standard_output() -> Self {
        Self::new(size_of_output())
    }

    /// Returns the size of the terminal on standard error.
    pub(crate) fn of_standard_error() -> Self {
        Self::new(size_of_errors())
    }

    /// Returns the size that a terminal reports, or the default.
    pub(crate) fn new(reported: Option<(usize, usize)>) -> Self {
        let reported = reported.filter(|(columns, rows)| *columns > 0 && *rows > 0);
        let (columns, rows) = reported.unwrap_or((80, 24));
        Self { columns, rows }
    }
}
