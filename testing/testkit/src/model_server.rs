//! A model server that follows scripts.
//!
//! A [`Script`] is plain data. It can run in memory with a stopped clock, and over sockets with `ModelServer`
//! (feature `sockets`). [`Drawn`] creates scripts with every kind of failure.

mod random;
mod script;
#[cfg(feature = "sockets")]
mod serving;

pub use random::{Drawn, GIANT, Verdict};
pub use script::{Framing, Head, Piece, Script, Then, chunk};
#[cfg(feature = "sockets")]
pub use serving::{Asked, ModelServer, Seen};
