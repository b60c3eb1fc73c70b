//! A model server that follows scripts.
//!
//! A [`Script`] is plain data: it can be played in memory, on a clock that is stopped, as well as over sockets, which
//! `ModelServer` does (feature `sockets`). [`Drawn`] draws every kind of trouble.

mod random;
mod script;
#[cfg(feature = "sockets")]
mod serving;

pub use random::{Drawn, GIANT, Verdict};
pub use script::{Framing, Head, Piece, Script, Then, chunk};
#[cfg(feature = "sockets")]
pub use serving::{Asked, ModelServer, Seen};
