//! All tests of the crate that use its public interface, in one program.

#[cfg(feature = "builtin")]
mod builtin;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod scenarios;
