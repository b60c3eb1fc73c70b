//! Settings as words of Python.

use plaincall_call::{Stop, Unclosed};
use pyo3::prelude::*;

use crate::error::one_of;

/// Returns how a text ended.
pub(crate) fn stop_from(word: &str) -> PyResult<Stop> {
    Ok(match word {
        "natural" => Stop::Natural,
        "end_of_file" => Stop::EndOfFile,
        "length" => Stop::Length,
        "broken" => Stop::Broken,
        other => {
            return Err(one_of(
                "stop",
                other,
                &["natural", "end_of_file", "length", "broken"],
            ));
        }
    })
}

/// Returns how calls without an end marker are handled.
pub(crate) fn unclosed_from(word: &str) -> PyResult<Unclosed> {
    Ok(match word {
        "reject" => Unclosed::Reject,
        "run" => Unclosed::Run,
        other => return Err(one_of("unclosed", other, &["reject", "run"])),
    })
}
