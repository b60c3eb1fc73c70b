//! Groups of options that several commands have.
//!
//! What stands here knows nothing of what the options lead to.
#![allow(
    clippy::doc_markdown,
    reason = "help has no markup that would be read, so a proper name stands in it as it is"
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
mod schema;
mod session;
mod teaching;
mod unclosed;

pub(crate) use agent::AgentOptions;
pub(crate) use color::Color;
pub(crate) use dialect::DialectOptions;
pub(crate) use files::FileOptions;
pub(crate) use schema::SchemaOption;
pub(crate) use session::SessionOptions;
pub(crate) use teaching::TeachingOptions;
pub(crate) use unclosed::UnclosedChoice;
