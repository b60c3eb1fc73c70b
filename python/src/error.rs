//! The exceptions of the package. Each is a `ValueError`: an argument cannot be used.

use std::fmt::Display;

use pyo3::create_exception;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

create_exception!(
    plaincall,
    DialectError,
    PyValueError,
    "The options of a dialect cannot be used together, or are not enough for the operation."
);
create_exception!(
    plaincall,
    DefinitionError,
    PyValueError,
    "A tool cannot be used. The message has a JSON Pointer into the definitions."
);
create_exception!(
    plaincall,
    RenderError,
    PyValueError,
    "The syntax cannot express a call, or it would be parsed differently."
);
create_exception!(
    plaincall,
    GrammarError,
    PyValueError,
    "There is no grammar for the tools."
);

pub(crate) fn dialect(error: impl Display) -> PyErr {
    DialectError::new_err(error.to_string())
}

pub(crate) fn definition(error: impl Display) -> PyErr {
    DefinitionError::new_err(error.to_string())
}

pub(crate) fn value(error: impl Display) -> PyErr {
    PyValueError::new_err(error.to_string())
}

/// An argument is none of the allowed words.
pub(crate) fn one_of(parameter: &str, given: &str, allowed: &[&str]) -> PyErr {
    let allowed = allowed.join("`, `");
    value(format!(
        "unknown {parameter} `{given}`; possible values: `{allowed}`"
    ))
}
