//! Limits for the size of a call.

use serde::{Deserialize, Serialize};

/// The deepest pointer that any setting allows. Recursion over arguments is bounded by it.
pub const DEEPEST: usize = 256;

/// Limits for the size of a call (`spec/block.md` 7.8).
///
/// Each excess is an error diagnostic of its call, never a silent loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Limits {
    /// Segments of a pointer. At most 256.
    pub depth: usize,
    /// Arguments of a call.
    pub arguments: usize,
    /// Distinct dependencies of a call.
    pub dependencies: usize,
    /// Bytes of one value, and of the kept text before the first argument. `None`: no limit.
    pub value_bytes: Option<usize>,
    /// Warnings kept for one call; further ones are only counted. `None`: no limit.
    pub warnings: Option<usize>,
}

impl Limits {
    /// The limits for reading texts: values of any length.
    pub const fn for_reading() -> Self {
        Self {
            depth: 64,
            arguments: 10_000,
            dependencies: 256,
            value_bytes: None,
            warnings: None,
        }
    }

    /// The limits for running calls: values of at most 16 MiB.
    pub const fn for_running() -> Self {
        Self {
            value_bytes: Some(16 << 20),
            warnings: Some(1000),
            ..Self::for_reading()
        }
    }

    #[doc(hidden)]
    pub fn depth(&self) -> usize {
        self.depth.min(DEEPEST)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_reading()
    }
}
