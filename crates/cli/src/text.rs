//! Input texts: reading, parsing and diagnostics.

pub(crate) mod advice;
pub(crate) mod diagnostics;
pub(crate) mod event_line;
pub(crate) mod input;
pub(crate) mod json_error;
pub(crate) mod json_line;
pub(crate) mod rejections;
pub(crate) mod source;
