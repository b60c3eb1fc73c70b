//! The replies of a model: text in, decided calls out, by one reader. This crate runs no tool and does no I/O.
//!
//! ```
//! use plaincall_reply::{ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
//! use plaincall_syntax::Dialect;
//! use plaincall_tool::{Limits, Parameter, ParameterKind, ToolSet, ToolSpec};
//!
//! let tools = ToolSet::new([ToolSpec::new("read-file")
//!     .parameter(Parameter::new("path", ParameterKind::String))])?;
//! let dialect = Dialect::block();
//! let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
//! let mut reader = ReplyReader::new(&dialect, tools, check, Limits::for_running())?;
//! for chunk in ["!!!GADGET_START:read-file\n!!!AR", "G:path\na.txt\n!!!GADGET_END\n"] {
//!     for item in reader.feed(chunk) {
//!         if let ReplyItem::Call(read) = item {
//!             assert_eq!(read.call.name, "read-file");
//!             assert_eq!(read.bound()?.arguments.get("path"), Some("a.txt"));
//!         }
//!     }
//! }
//! reader.finish(Stop::Natural);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! - [`ReplyReader`] reads a reply in chunks and returns text, reasoning and validated calls; [`Document`] reads a complete
//!   text.
//! - [`ReplyCheck`] decides which calls may run, and [`bind`](bind()) validates a call against its tool.
//! - [`JsonStream`] writes the arguments of a call as JSON while they arrive; [`extract`](mod@extract) converts each text to a
//!   row.
//! - [`rescue`] finds the calls of a model that was not taught our syntax.
//! - [`Untrusted`] text enters a prompt only through [`PromptTextBuilder`], which escapes it.
//!   [`untrusted::EchoGuard`] detects a call that the model copied from such text.
//!
//! # Features
//! Default: none. `jsonschema` validates arguments against the whole schema of a tool.
//!
//! The project's `spec/` folder contains the rules.

mod bind;
mod call;
mod call_error;
mod candidates;
#[doc(hidden)]
pub mod collector;
mod decision;
pub mod document;
pub mod extract;
mod ids;
#[doc(hidden)]
pub mod invented;
mod json_stream;
mod leading;
mod may_run;
pub mod openai;
mod outside;
mod reply_reader;
pub mod rescue;
mod stop;
mod suspect_marker;
pub mod untrusted;

pub use bind::bind;
pub use call::{CallHeader, ToolCall};
pub use call_error::{CallError, MissingEnd};
pub use decision::{Binding, Bound, DecidedCall};
pub use document::Document;
pub use json_stream::{JsonStream, NotClosed};
#[doc(hidden)]
pub use may_run::ReadCall;
pub use may_run::ReplyCheck;
pub use plaincall_names::Unclosed;
pub use reply_reader::{ReplyEnd, ReplyItem, ReplyItems, ReplyReader};
pub use stop::Stop;
pub use suspect_marker::SuspectMarker;
pub use untrusted::prompt_text::{PromptText, PromptTextBuilder};
pub use untrusted::{ModelText, Trusted, Untrusted};
