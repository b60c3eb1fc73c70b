//! A run as people see it in lines of text, while it goes on and from its record.

pub(crate) mod board;
pub(crate) mod call_line;
pub(crate) mod canvas;
pub(crate) mod critical;
pub(crate) mod glyphs;
pub(crate) mod line;
pub(crate) mod palette;
pub(crate) mod prose;
pub(crate) mod summary;
pub(crate) mod timeline;
pub(crate) mod words;
