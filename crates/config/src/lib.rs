//! The files that people write, as data: every value knows its file, line and span, and every problem is reported with
//! its place and what to do about it. The crate does no I/O and knows no environment.
//!
//! - [`Document`]: a TOML file, or a JSON file with comments, as a tree of [`Node`]s. Its parts become types through serde,
//!   and it reports all [`Problem`]s at once; a value with a problem counts as absent for the rest.
//! - [`Node`]: a value with its spans and its [`Origin`]; [`Node::overlay`] puts one layer over another.
//! - [`Time`], [`TimeOrZero`], [`Size`], [`OneOrMore`], [`AsText`]: fields with the one grammar that all files, options and
//!   variables share. An error of a type's own `Deserialize` or `TryFrom` is the phrase behind "it must be".
//! - [`tools`]: the types of `tools.toml`. [`servers`]: those of a file with MCP servers.
//! - A place in a document is a JSON Pointer: `/tools/search/retry/attempts`. [`child`] makes one.
//!
//! ```
//! use plaincall_config::{Document, Place, Time};
//!
//! #[derive(Default, serde::Deserialize)]
//! #[serde(default)]
//! struct Limits {
//!     timeout: Option<Time>,
//!     tries: u32,
//! }
//!
//! let mut document = Document::toml("limits.toml", "timeot = \"5s\"\ntries = 3\n");
//! let limits: Limits = document.read("").unwrap_or_default();
//! if limits.tries > 2 {
//!     document.problem(&Place::value("/tries"), "at most 2 tries make sense");
//! }
//! let error = document.finish(limits).err().unwrap();
//! assert_eq!(
//!     error.to_string(),
//!     "limits.toml: line 1, column 1: unknown key `timeot`; did you mean `timeout`?\n\
//!      limits.toml: line 2, column 9: at most 2 tries make sense"
//! );
//! ```

mod deserialize;
mod document;
mod error;
mod node;
mod parse;
mod secret;
pub mod servers;
mod settings;
pub mod tools;
mod values;

pub use document::{Document, Place};
pub use error::{FileError, Problem};
pub use node::{Node, Origin, Value, child, dotted};
pub use secret::{Address, Hide, names_a_secret, not_shown, redacted, redacted_prose, starred};
pub use settings::{
    Api, Arguments, Builtin, FilePath, KeySource, Layers, Limits, MAX_REPAIR_ROUNDS, Mcp, Model,
    OnNoToolCall, Reasoning, Settings, Syntax, read_models, read_settings, reference, schema,
    untrusted, variables, with_markers,
};
pub use values::{AsText, OneOrMore, Size, Time, TimeOrZero};
