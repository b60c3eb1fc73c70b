//! Parsers for numbers on the command line.

use std::num::NonZeroUsize;

/// Parses a number of bytes.
pub(crate) fn size(text: &str) -> Result<NonZeroUsize, &'static str> {
    text.parse()
        .map_err(|_| "expected an integer of at least 1")
}
