//! What `ask` and `chat` share: a conversation, and a question on its way to its answer.

mod build;
mod play;

pub(crate) use build::{Built, Wanted, build, chosen, explained, kind, status};
pub(crate) use play::{Ended, play, warning};
