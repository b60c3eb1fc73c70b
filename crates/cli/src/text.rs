//! Input texts: reading and parsing.

pub(crate) mod event_line;
pub(crate) mod input;
pub(crate) mod json_error;
pub(crate) mod json_line;
