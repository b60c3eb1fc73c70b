//! Reports about logged runs, as text.

pub(crate) mod lines;
