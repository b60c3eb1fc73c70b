//! All tests of the crate that use what is public, as one program.

#[cfg(feature = "builtin")]
mod builtin;
#[cfg(feature = "mcp")]
mod mcp;
mod models;
mod scenarios;
