//! Texts: where they come from, how they are read, and what is found in them.

pub(crate) mod advice;
pub(crate) mod event_line;
pub(crate) mod findings;
pub(crate) mod input;
pub(crate) mod json_error;
pub(crate) mod reading;
pub(crate) mod rejections;
pub(crate) mod source;
