//! All tests of the crate that use what is public, as one program.

mod config;
mod settings;
