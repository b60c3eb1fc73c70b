//! Configuration files as data: every value has its file, line and span, and every problem is reported with its location and a
//! fix. The crate does no I/O and does not read the environment.
//!
//! - [`Document`]: a TOML file, or a JSON file with comments, as a tree of [`Node`]s. Its parts are deserialized with serde. It
//!   collects all [`FileDiagnostic`]s; an invalid value counts as absent.
//! - [`Node`]: a value with its spans and its [`Origin`]; [`Node::overlay`] merges layers.
//! - [`Time`], [`TimeOrZero`], [`Size`], [`SocketAddress`], [`OneOrMore`], [`AsText`]: fields with the same grammar in all
//!   files, options and variables. An error of a type's `Deserialize` or `TryFrom` is the phrase after "it must be".
//! - [`settings`]: the types of `config.toml` and `plaincall.toml`. [`tools`]: those of `tools.toml`. [`servers`]: those of a
//!   file with MCP servers. [`secret`]: output without secrets.
//! - A location in a document is a JSON Pointer: `/tools/search/retry/attempts`. [`child`] appends to one.
//!
//! ```
//! use plaincall_config::{Document, Location, Time};
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
//!     document.problem(&Location::value("/tries"), "at most 2 tries make sense");
//! }
//! let error = document.finish(limits).err().unwrap();
//! assert_eq!(
//!     error.to_string(),
//!     "limits.toml: line 1, column 1: unknown key `timeot`; did you mean `timeout`?\n\
//!      limits.toml: line 2, column 9: at most 2 tries make sense"
//! );
//! ```

mod deserialize;
mod dialect_options;
mod document;
mod error;
mod node;
mod parse;
mod pattern;
pub mod secret;
pub mod servers;
pub mod settings;
pub mod tools;
mod values;

pub use dialect_options::{DialectOptions, MarkerPlaces, SyntaxChoice};
pub use document::{Document, Location};
pub use error::{FileDiagnostic, FileError};
pub use node::{Node, Origin, Value, child, dotted};
pub use pattern::{for_name, matches};
pub use values::{AsText, OneOrMore, Size, SocketAddress, Time, TimeOrZero};
