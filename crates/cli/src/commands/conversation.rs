//! Conversations of `ask` and `chat`.

mod build;
mod play;

pub(crate) use build::{Built, Setup, build, chosen, explained, kind, status};
pub(crate) use play::{Ended, play, warning};
