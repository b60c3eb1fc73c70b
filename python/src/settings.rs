//! Settings as words of Python.

use plaincall_reply::{Stop, Unclosed};
use pyo3::prelude::*;

use crate::error::one_of;

/// Returns how a text ended.
pub(crate) fn stop_from(word: &str) -> PyResult<Stop> {
    Stop::from_name(word).ok_or_else(|| one_of("stop", word, &Stop::ALL.map(Stop::name)))
}

/// Returns how calls without an end marker are handled.
pub(crate) fn unclosed_from(word: &str) -> PyResult<Unclosed> {
    let names = Unclosed::ALL.map(Unclosed::name);
    Unclosed::from_name(word).ok_or_else(|| one_of("unclosed", word, &names))
}
