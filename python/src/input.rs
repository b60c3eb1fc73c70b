//! Text and bytes as arguments.

use std::borrow::Cow;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyString};

/// Returns the bytes of a `str` (as UTF-8), `bytes` or `bytearray`.
///
/// A lone surrogate of a `str` is not a character. Its bytes are those of Python's error handler `surrogatepass`, which the
/// parser replaces like all bytes that are not UTF-8.
pub(crate) fn bytes<'p>(text: &'p Bound<'_, PyAny>) -> PyResult<Cow<'p, [u8]>> {
    if let Ok(text) = text.cast::<PyString>() {
        if let Ok(text) = text.to_str() {
            return Ok(Cow::Borrowed(text.as_bytes()));
        }
        let py = text.py();
        let encoded = text.call_method1(
            intern!(py, "encode"),
            (intern!(py, "utf-8"), intern!(py, "surrogatepass")),
        )?;
        return Ok(Cow::Owned(encoded.cast::<PyBytes>()?.as_bytes().to_vec()));
    }
    if let Ok(bytes) = text.cast::<PyBytes>() {
        return Ok(Cow::Borrowed(bytes.as_bytes()));
    }
    if let Ok(bytes) = text.cast::<PyByteArray>() {
        return Ok(Cow::Owned(bytes.to_vec()));
    }
    Err(PyTypeError::new_err(format!(
        "expected str or bytes, found {}",
        text.get_type().name()?
    )))
}

/// A text argument. Lone surrogates and bytes that are not UTF-8 are replaced, as the parser replaces them.
#[derive(Default)]
pub(crate) struct Lossy(pub(crate) String);

impl FromPyObject<'_, '_> for Lossy {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let bytes = bytes(&object)?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
