//! All tests of the crate that use what is public, as one program.

mod commands;
mod dropped;
mod log;
mod passed_on;
mod patterns;
mod resume;
mod rules;
mod runs;
#[cfg(feature = "tracing")]
mod spans;
mod tools_file;
