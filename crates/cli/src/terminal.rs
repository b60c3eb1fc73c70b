//! What people see on a terminal.

pub(crate) mod excerpt;
pub(crate) mod listing;
pub(crate) mod problems;
