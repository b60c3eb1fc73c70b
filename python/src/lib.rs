//! The extension module of the Python package `plaincall`: a thin layer over the Rust crates, without logic of its own.
//!
//! It starts no runtime, and no thread but the one that frees memory after a signal. So forks, cancellation and the end of the
//! interpreter need no special care. Texts of 64 KiB or more are parsed without the global interpreter lock (`lock.rs`).

#![allow(
    clippy::needless_pass_by_value,
    reason = "pyo3 passes extracted arguments by value"
)]

mod adapter;
mod arrow;
mod call;
mod dialect;
mod document;
mod error;
mod events;
mod grammar;
mod input;
mod json;
mod lock;
mod nulls;
mod parser;
mod plan;
mod reader;
mod settings;
mod table;
mod toolbox;

use pyo3::prelude::*;

#[pymodule]
mod _plaincall {
    use super::{Bound, PyModule, PyModuleMethods as _, PyResult};

    #[pymodule_export]
    use crate::adapter::{Adapter, Asked, ErrorResponse, TokenCount};
    #[pymodule_export]
    use crate::call::{Call, unpickled_call};
    #[pymodule_export]
    use crate::dialect::{Dialect, unpickled_dialect};
    #[pymodule_export]
    use crate::document::{Document, NearMiss, near_misses, parse, unpickled_document};
    #[pymodule_export]
    use crate::error::{DefinitionError, DialectError, GrammarError, RenderError};
    #[pymodule_export]
    use crate::events::{
        CallEnd, CallStart, Diagnostic, Ignored, Reasoning, Text, ValueDelta, ValueEnd, ValueStart,
    };
    #[pymodule_export]
    use crate::grammar::Grammar;
    #[pymodule_export]
    use crate::parser::Parser;
    #[pymodule_export]
    use crate::plan::Plan;
    #[pymodule_export]
    use crate::reader::Reader;
    #[pymodule_export]
    use crate::table::{Table, error_rates, extract_table, render_table};
    #[pymodule_export]
    use crate::toolbox::ToolSet;

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))?;
        module.add("USAGE_WAIT", crate::adapter::USAGE_WAIT.as_secs_f64())?;
        crate::lock::register(module)
    }
}
