//! The definition of a tool, the schema of its arguments, and arguments as values, read and validated by the
//! definition. This crate runs no tool, reads no call and does no I/O.
//!
//! ```
//! use plaincall_tool::{Parameter, ParameterKind, ToolSpec, bind_object};
//! use serde_json::json;
//!
//! let tool = ToolSpec::new("read-file")
//!     .describe("Reads a file.")
//!     .parameter(Parameter::new("path", ParameterKind::String))
//!     .parameter(Parameter::new("lines", ParameterKind::Integer).optional());
//! tool.check()?;
//! let object = json!({"path": "a.txt", "lines": "many"});
//! let problems = bind_object(&tool, object.as_object().expect("an object")).unwrap_err();
//! assert_eq!(problems[0].message, "`lines`: expected an integer, found `\"many\"`");
//! # Ok::<(), plaincall_tool::SpecError>(())
//! ```
//!
//! - Definitions: [`ToolSpec`] defines a tool, with the [`Schema`] of its arguments, and [`ToolSet`] holds several.
//!   [`definitions`] reads the tool definitions of other programs.
//! - Values: [`Arguments`] holds the text of each value and converts it to the requested type. [`json`] converts values
//!   without a definition.
//! - Validation: [`bind_arguments`] and [`bind_object`] validate arguments against a definition.
//!
//! Modules that the documentation does not show are for the other crates of Plaincall; they may change in any version.
//!
//! # Features
//! Default: none.
//! - `jsonschema` validates arguments against the whole schema of a tool.
//! - `schemars` derives a tool's parameters from a type.
//!
//! The project's `spec/` folder contains the rules.

#[doc(hidden)]
pub mod absent;
#[doc(hidden)]
pub mod argument_error;
#[doc(hidden)]
pub mod arguments;
#[doc(hidden)]
pub mod bind;
mod coerce;
mod conversion_rule;
#[doc(hidden)]
pub mod decimal;
#[doc(hidden)]
pub mod flatten;
#[doc(hidden)]
pub mod invisible;
#[doc(hidden)]
pub mod json_text;
#[doc(hidden)]
pub mod limits;
mod placing;
#[doc(hidden)]
pub mod pointer;
#[doc(hidden)]
pub mod read;
mod reply_diagnostic;
#[doc(hidden)]
pub mod schema;
mod spec;
mod spec_error;
#[doc(hidden)]
pub mod text_type;
#[doc(hidden)]
pub mod tree;
#[doc(hidden)]
pub mod validate;

pub use argument_error::ArgumentError;
pub use arguments::{Argument, Arguments};
pub use bind::bind_arguments;
pub use bind::object::bind_object;
pub use conversion_rule::ConversionRule;
pub use flatten::{flatten, flatten_call};
pub use limits::Limits;
pub use plaincall_names::Effect;
pub use reply_diagnostic::ReplyDiagnostic;
pub use schema::Schema;
pub use spec::example::CallExample;
pub use spec::lookup::{NoTools, ToolLookup};
pub use spec::set::ToolSet;
pub use spec::{Parameter, ParameterKind, ToolSpec};
pub use spec_error::SpecError;

/// Tool definitions of other programs: `OpenAI`, Anthropic and MCP.
pub mod definitions {
    pub use crate::spec::definitions::{DefinitionsError, read_tool_definitions};
    pub use crate::spec::usable::{ChangedTool, UsableTools, read_usable_tools};
}

/// Arguments as JSON.
pub mod json {
    pub use crate::coerce::coerce;
    pub use crate::json_text::{keep_digits, parse};
}

/// The form of a tool's calls in the emoji syntax.
pub mod usage {
    pub use crate::spec::usage::{Usage, UsageBody, UsageItem};
}
