//! The `plaincall` command: what can be asked for, and what is done about it.
//!
//! This library exists for the binary of the same package and for its tests; its items are no interface to build on.

mod chat;
mod commands;
mod config;
mod definitions;
mod environment;
mod options;
mod output;
mod picture;
mod reference;
mod report;
mod run;
mod runtime;
mod serve;
mod session;
mod status;
mod talk;
mod terminal;
mod text;
mod tools_file;
mod visible;

pub use commands::main;
pub use config::reference as configuration_reference;
pub use config::schema as configuration_schema;
pub use reference::reference;
