//! Groups of options that several commands share.
//!
//! This module does not depend on the commands.
#![allow(
    clippy::doc_markdown,
    reason = "help is plain text, so proper names have no markup"
)]
#![allow(
    clippy::struct_excessive_bools,
    reason = "independent switches of the command line"
)]

mod agent;
mod color;
mod dialect;
mod files;
pub(crate) mod number;
mod session;
mod tools;
mod unclosed;

pub(crate) use agent::AgentOptions;
pub(crate) use color::Color;
pub(crate) use dialect::{DialectOption, ReplyDialect, ReplyDialectOption, TaughtDialect};
pub(crate) use files::FileOptions;
pub(crate) use plaincall_config::{DialectOptions, SyntaxChoice};
pub(crate) use session::SessionOptions;
pub(crate) use tools::ToolsOption;
pub(crate) use unclosed::UnclosedChoice;
