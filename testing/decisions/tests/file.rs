//! The replies and decisions for the packages.

/// The number of replies that the ordinary test reads.
pub(crate) const SHARE: u64 = 250;
