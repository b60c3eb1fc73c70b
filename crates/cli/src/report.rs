//! The record of a run, as text and as a page.

pub(crate) mod lines;
pub(crate) mod page;
pub(crate) mod trace;
pub(crate) mod transcript;
