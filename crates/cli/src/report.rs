//! Reports about logged runs, as text and as an HTML page.

pub(crate) mod lines;
pub(crate) mod page;
pub(crate) mod trace;
pub(crate) mod transcript;
