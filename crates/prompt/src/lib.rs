//! Texts for a model: the system prompt, examples, earlier turns with their results, and messages about rejected calls. Data
//! in, text out.
//!
//! ```
//! use plaincall_prompt::{PromptOptions, prompt};
//! use plaincall_syntax::Dialect;
//! use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
//!
//! let tool = ToolSpec::new("read-file")
//!     .describe("Reads a file.")
//!     .parameter(Parameter::new("path", ParameterKind::String));
//! let system = prompt([&tool], &Dialect::block(), &PromptOptions::new())?;
//! assert!(system.text().contains("## read-file"));
//! # Ok::<(), plaincall_syntax::DialectError>(())
//! ```
//!
//! - [`prompt`](prompt()) writes the system prompt, and [`few_shot`] examples as messages before a conversation.
//! - [`history`] writes earlier turns and results, and [`render`] single calls.
//! - [`repair`] writes a message about invalid calls.
//! - `answer` (feature `jsonschema`) describes and checks answers in JSON.
//!
//! # Features
//! Default: none.
//! - `jsonschema` validates arguments and answers against their whole schema.
//! - `schemars` derives the schema of an answer from a type.
//!
//! The project's `spec/` folder contains the rules.

#[cfg(feature = "jsonschema")]
pub mod answer;
pub mod few_shot;
pub mod history;
mod prompt;
mod render_call;
pub mod repair;
mod spell_emoji;

pub use prompt::{Prompt, PromptOptions, PromptPart, SkippedExample, prompt, tool_entry};

/// JSON arguments written as the text of a call.
pub mod render {
    pub use crate::render_call::{JsonCall, RenderCallError, render_call};
    pub use crate::spell_emoji::{EmojiText, spell_emoji};
}
