//! Tools and tool calls as data: definitions, arguments, validation, prompts and repair messages. This crate executes
//! no tools and does no I/O.
//!
//! Define your tools, add [`prompt`](prompt::prompt) to the system prompt, and read the reply with a [`ReplyReader`]:
//!
//! ```
//! use plaincall_call::{
//!     Limits, Parameter, ParameterKind, ReplyCheck, ReplyItem, ReplyReader, Stop, ToolSet, ToolSpec, Unclosed,
//!     prompt::{PromptOptions, prompt},
//! };
//! use plaincall_syntax::Dialect;
//!
//! let tools = ToolSet::new([ToolSpec::new("read-file")
//!     .describe("Reads a file.")
//!     .parameter(Parameter::new("path", ParameterKind::String))])?;
//! let dialect = Dialect::block();
//! let system = prompt(tools.iter(), &dialect, &PromptOptions::new())?;
//! assert!(system.text().contains("## read-file"));
//!
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
//! - Tools: [`ToolSpec`] defines a tool, with the [`Schema`] of its arguments. [`definitions`] reads the tool
//!   definitions of other programs.
//! - Replies: [`ReplyReader`] reads a reply in chunks and returns text, reasoning and validated calls; [`Document`]
//!   reads a complete text. [`collector`] assembles calls from the events of `plaincall-syntax`.
//! - Calls: [`ReplyCheck`] decides which calls may run, and [`bind`](bind) validates a call against its tool.
//!   [`Arguments`] holds the text of each value and converts it to the requested type.
//! - Tables: [`extract`](mod@extract) converts each text to a row.
//! - Other formats: [`rescue`] finds the calls of a model that was not taught our syntax.
//! - Messages to the model: [`prompt`] writes the system prompt, [`history`] earlier turns and results, and [`repair`] a
//!   message about invalid calls. `answer` (feature `jsonschema`) describes and checks answers in JSON.
//! - Safety: [`Untrusted`] text enters a prompt only through [`PromptTextBuilder`], which escapes it.
//!   [`untrusted::EchoGuard`] detects a call that the model copied from such text.
//!
//! # Features
//! Default: none.
//! - `jsonschema` validates arguments against the whole schema of a tool.
//! - `schemars` derives a tool's parameters from a type.
//!
//! The project's `spec/` folder contains the rules.

mod absent;
#[cfg(feature = "jsonschema")]
pub mod answer;
mod argument_error;
mod arguments;
mod bind;
mod bind_call;
mod call;
mod call_error;
mod candidates;
mod coerce;
pub mod collector;
mod conversion_rule;
mod decimal;
mod decision;
pub mod document;
pub mod extract;
pub mod few_shot;
mod flatten;
pub mod grammar;
pub mod history;
mod ids;
mod invented;
mod invisible;
mod json_stream;
mod json_text;
mod leading;
mod limits;
mod may_run;
pub mod openai;
mod outside;
mod placing;
mod pointer;
pub mod prompt;
mod read;
mod render_call;
pub mod repair;
mod reply_diagnostic;
mod reply_reader;
pub mod rescue;
mod schema;
mod spec_error;
mod spell_emoji;
mod stop;
mod suspect_marker;
mod text_type;
mod tool;
mod tree;
pub mod untrusted;
mod validate;

pub use argument_error::ArgumentError;
pub use arguments::{Argument, Arguments};
pub use bind::bind_arguments;
pub use bind::object::bind_object;
pub use bind_call::bind;
pub use call::{CallHeader, ToolCall};
pub use call_error::{CallError, MissingEnd};
pub use conversion_rule::ConversionRule;
pub use decision::{Binding, Bound, DecidedCall};
pub use document::Document;
#[doc(hidden)]
pub use invented::InventedResults;
pub use limits::Limits;
pub use may_run::{ReadCall, ReplyCheck};
pub use plaincall_names::{DialectOptions, SyntaxOption};
pub use plaincall_names::{Effect, Unclosed, named};
pub use reply_diagnostic::ReplyDiagnostic;
pub use reply_reader::{ReplyEnd, ReplyItem, ReplyItems, ReplyReader};
pub use schema::Schema;
pub use spec_error::SpecError;
pub use stop::Stop;
pub use suspect_marker::SuspectMarker;
pub use tool::example::CallExample;
pub use tool::lookup::{NoTools, ToolLookup};
pub use tool::set::ToolSet;
pub use tool::{Parameter, ParameterKind, ToolSpec};
pub use untrusted::prompt_text::{PromptText, PromptTextBuilder};
pub use untrusted::{ModelText, Trusted, Untrusted};

/// Tool definitions of other programs: `OpenAI`, Anthropic and MCP.
pub mod definitions {
    pub use crate::tool::definitions::{DefinitionsError, read_tool_definitions};
    pub use crate::tool::usable::{ChangedTool, UsableTools, read_usable_tools};
}

/// Arguments as JSON.
pub mod json {
    pub use crate::coerce::coerce;
    pub use crate::json_stream::{JsonStream, NotClosed};
    pub use crate::json_text::{keep_digits, parse};
}

/// Keys and the segments of JSON Pointers.
pub mod pointers {
    pub use plaincall_names::pointers::{escape, unescape};
}

/// Suggestions for misspelled names.
pub mod names {
    pub use plaincall_names::{did_you_mean, nearest_name, unknown_tool};
}

/// JSON arguments written as the text of a call.
pub mod render {
    pub use crate::flatten::{flatten, flatten_call};
    pub use crate::render_call::{JsonCall, RenderCallError, render_call};
    pub use crate::spell_emoji::{EmojiText, spell_emoji};
}

/// The form of a tool's calls in the emoji syntax.
pub mod usage {
    pub use crate::tool::usage::{Usage, UsageBody, UsageItem};
}
