//! All tests of the crate that use its public interface, in one program.

mod bytes;
mod dialects;
mod messages;
mod parser;
