//! Conversations of `ask` and `chat`.

mod build;
mod play;
mod subagents;

pub(crate) use build::{
    Built, Setup, build, chosen, explained, failure, kind, report_grammar, status,
};
pub(crate) use play::{Ended, play, warning};
