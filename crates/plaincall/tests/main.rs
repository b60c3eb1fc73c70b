//! All tests of the crate that use its public interface, in one program.

mod commands;
mod dropped;
mod durable;
mod log;
mod passed_on;
mod patterns;
mod private;
mod resume;
mod rules;
mod runs;
mod tools_file;
