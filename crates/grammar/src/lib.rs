//! Grammars for constrained decoding: an inference engine keeps a model from writing an invalid call (`spec/grammar.md`).

mod arguments;
mod automaton;
mod build;
mod ecma_pattern;
mod emoji;
mod engine;
mod error;
mod exclusion;
mod gbnf;
mod grammar;
mod json_string;
mod keywords;
mod lark;
mod near_misses;
mod options;
mod pattern;
mod productive;
mod schema_values;
mod string_limits;
mod structural_tag;
mod text;
mod unheld;

pub use build::grammar;
pub use error::GrammarError;
pub use grammar::Grammar;
pub use options::{Choice, GrammarOptions};
pub use plaincall_names::{Constrain, Engine};
pub use unheld::Unheld;
