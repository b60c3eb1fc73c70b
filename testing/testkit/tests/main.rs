//! All tests of the crate that use what is public, as one program.

mod costly_schemas;
mod digits;
mod grammar;
mod history;
mod json_streams;
mod real_replies;
mod reply_reader;
mod spec;
mod untrusted;
