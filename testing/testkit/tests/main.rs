//! All tests of the crate that use what is public, as one program.

mod digits;
mod grammar;
mod history;
mod json_streams;
mod reply_reader;
mod spec;
mod untrusted;
