//! How much of a call is kept.

use serde::{Deserialize, Serialize};

/// The deepest pointer that any setting allows. What walks over arguments may recurse; this bounds it.
pub(crate) const DEEPEST: usize = 256;

/// How large a call may be (`spec/block.md` 7.8).
///
/// What is over a limit is an error diagnostic of its call, never a silent loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// Segments of a pointer. Values over 256 count as 256.
    pub depth: usize,
    /// Arguments of a call.
    pub arguments: usize,
    /// Different dependencies of a call.
    pub dependencies: usize,
    /// Bytes of one value; also of the text before the first argument, as far as it is kept. `None`: no limit.
    pub value_bytes: Option<usize>,
    /// Warnings that are kept for one call; further ones are counted only. `None`: no limit.
    pub warnings: Option<usize>,
}

impl Limits {
    /// The limits for reading: values of any length.
    pub const fn for_reading() -> Self {
        Self {
            depth: 64,
            arguments: 10_000,
            dependencies: 256,
            value_bytes: None,
            warnings: None,
        }
    }

    /// The limits where calls are executed: values of at most 16 MiB.
    pub const fn for_running() -> Self {
        Self {
            value_bytes: Some(16 << 20),
            warnings: Some(1000),
            ..Self::for_reading()
        }
    }

    pub(crate) fn depth(&self) -> usize {
        self.depth.min(DEEPEST)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self::for_reading()
    }
}
