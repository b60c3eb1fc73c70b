//! Settings as words of Python.

use plaincall_reply::{Stop, Unclosed};
use pyo3::prelude::*;

use crate::error::one_of;
use crate::input::argument;

/// Returns how a text ended: from a word of this package, the finish reason of an API, or `None` if it is not known.
pub(crate) fn stop_from(stop: Option<&Bound<'_, PyAny>>) -> PyResult<Stop> {
    let Some(stop) = stop else {
        return Ok(Stop::Broken);
    };
    let word: String = argument("stop", "a str, such as the finish reason of an API", stop)?;
    Ok(Stop::from_name(&word).unwrap_or_else(|| Stop::from_finish_reason(&word)))
}

/// Returns how calls without an end marker are handled.
pub(crate) fn unclosed_from(unclosed: &Bound<'_, PyAny>) -> PyResult<Unclosed> {
    let word: String = argument("unclosed", "a str", unclosed)?;
    let names = Unclosed::ALL.map(Unclosed::name);
    Unclosed::from_name(&word).ok_or_else(|| one_of("unclosed", &word, &names))
}
