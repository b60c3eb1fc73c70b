//! The `plaincall` command: what can be asked for, and what is done about it.
//!
//! This library exists for the binary of the same package and for its tests; its items are no interface to build on.

mod commands;
mod definitions;
mod environment;
mod history;
mod keys;
mod options;
mod outcome;
mod output;
mod report;
mod runtime;
mod session;
mod settings;
mod status;
mod terminal;
mod text;
mod tools_file;
mod visible;

pub use commands::{command, main};
