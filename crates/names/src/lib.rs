//! The names that the files, options and packages of Plaincall share, as plain data: what a tool changes, how calls without an
//! end marker are handled, which engine constrains replies. And suggestions for misspelled names.
//!
//! A program that reads settings needs these names, but neither schemas nor grammars.
//!
//! ```
//! use plaincall_names::{Effect, did_you_mean};
//!
//! let names = Effect::ALL.map(Effect::name);
//! assert_eq!(Effect::from_name("read"), Some(Effect::Read));
//! assert_eq!(did_you_mean("raed", names), "; did you mean `read`?");
//! ```
//!
//! # Features
//! Default: none. `schemars` describes the names as JSON Schemas.

mod constrain;
mod dialect_options;
mod effect;
mod engine;
mod few_shot_example;
mod finish_reason;
mod format;
mod named;
mod nearest;
pub mod pointers;
mod unclosed;

pub use constrain::Constrain;
pub use dialect_options::{DialectOptions, SyntaxOption};
pub use effect::Effect;
pub use engine::Engine;
pub use few_shot_example::FewShotExample;
pub use finish_reason::FinishReason;
pub use format::Format;
#[doc(hidden)]
pub use nearest::shortened;
pub use nearest::{did_you_mean, nearest_name, unknown_tool};
pub use unclosed::Unclosed;
