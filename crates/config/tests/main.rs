//! All tests of the crate that use its public interface, in one program.

mod config;
mod dialects;
mod models;
mod settings;
