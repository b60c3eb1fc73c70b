//! The `plaincall` command-line interface.
//!
//! This library serves the binary of this package and its tests. It is not a public API.

mod commands;
mod definitions;
mod environment;
mod history;
mod keys;
mod model_servers;
mod options;
mod outcome;
mod output;
mod platform;
mod replacement;
mod report;
mod runtime;
mod sanitize;
mod session;
mod settings;
mod status;
mod terminal;
mod text;
mod tools_file;

pub use commands::{command, main};
