//! All tests of the crate that use what is public, as one program.

mod bytes;
mod dialects;
mod messages;
mod parser;
