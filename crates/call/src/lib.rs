//! Tools and tool calls as data: arguments, coercion, ids, binding. It runs nothing and does no I/O.
//!
//! The crate `plaincall-syntax` turns a model's text into events; this one turns the events into calls.
//!
//! - [`ReplyReader`]: a model's reply in, piece by piece; text, reasoning and validated calls out.
//! - [`Collector`]: events in, [`ToolCall`]s out, while the text arrives. [`Document`] for a text that is there already.
//! - [`Arguments`]: the text of every value, read as what is asked for.
//! - [`ToolSpec`]: what a tool takes, with the [`Schema`] of its arguments; [`bind`] holds a call against it.
//! - [`read_tool_definitions`]: tools as other programs define them.
//! - [`JsonStream`]: the arguments of a call as JSON text, while the model still writes them.
//! - [`Untrusted`]: text from outside, which enters a prompt only through [`PromptTextBuilder`]; [`EchoGuard`] knows a call
//!   that a model has only copied from it.
//! - [`prompt`]: what a model is told, so that it can write calls.
//! - [`history`] tells an earlier turn again, [`results`] how its calls ended, [`repair`] what is wrong with one.
//!
//! The feature `jsonschema` adds the validation of whole schemas.
//!
//! The rules are in the project's `spec/` folder.

mod argument_error;
mod arguments;
mod bind;
mod call;
mod call_error;
mod coerce;
mod collector;
mod decimal;
mod document;
mod flatten;
mod history;
mod ids;
mod invisible;
mod json_stream;
mod json_text;
mod leading;
mod limits;
mod may_run;
mod nearest;
mod openai;
mod placing;
mod pointer;
mod prompt;
mod read;
mod reading;
mod render_call;
mod repair;
mod reply_diagnostic;
mod reply_reader;
mod schema;
mod spec_error;
mod spell_emoji;
mod stop;
mod suspect_marker;
mod tool;
mod tree;
mod untrusted;
mod validate;

pub use argument_error::ArgumentError;
pub use arguments::{Argument, Arguments};
pub use bind::{bind, bind_arguments};
pub use call::ToolCall;
pub use call_error::{CallError, MissingEnd};
pub use coerce::coerce;
pub use collector::{Collected, Collector, Started};
pub use document::bound::{BoundCall, BoundDocument};
pub use document::{Document, DocumentBuilder, Segment};
pub use flatten::{flatten, flatten_call};
pub use history::invented::InventedResults;
pub use history::results::{CallStatus, ResultMessage, in_call_order, results};
pub use history::{PastCall, TurnPart, history};
pub use ids::{Assigned, Ids};
pub use json_stream::{JsonStream, NotClosed};
pub use json_text::parse as parse_json;
pub use limits::Limits;
pub use may_run::{Bound, ReplyCheck, Unclosed};
pub use nearest::{did_you_mean, nearest_name, unknown_tool};
pub use openai::{OpenAiCalls, SkippedCall, openai_calls};
pub use plaincall_syntax::{Severity, Span, Syntax, Termination};
pub use prompt::options::PromptOptions;
pub use prompt::{Prompt, PromptPart, prompt};
pub use render_call::{JsonCall, RenderCallError, render_call};
pub use repair::{repair, repair_reply};
pub use reply_diagnostic::ReplyDiagnostic;
pub use reply_reader::{ReplyEnd, ReplyItem, ReplyItems, ReplyReader};
pub use schema::Schema;
pub use spec_error::SpecError;
pub use spell_emoji::{EmojiText, spell_emoji};
pub use stop::Stop;
pub use suspect_marker::SuspectMarker;
pub use tool::definitions::{DefinitionsError, read_tool_definitions};
pub use tool::lookup::ToolLookup;
pub use tool::set::ToolSet;
pub use tool::usable::{ChangedTool, UsableTools, read_usable_tools};
pub use tool::usage::{Usage, UsageBody, UsageItem};
pub use tool::{Effect, Parameter, ParameterKind, ToolSpec};
pub use untrusted::echo::{Echo, EchoGuard};
pub use untrusted::prompt_text::{Origin, Part, PromptText, PromptTextBuilder};
pub use untrusted::{ModelText, Trusted, Untrusted};
