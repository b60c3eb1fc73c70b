//! Arguments. Errors name them: before Python 3.11, those of pyo3 do not.

use std::borrow::Cow;
use std::num::NonZeroUsize;

use pyo3::exceptions::PyTypeError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyInt, PyString};

use crate::dialect::Dialect;
use crate::error;

/// An argument has another type than this.
pub(crate) fn wrong_type(name: &str, expected: &str, found: &Bound<'_, PyAny>) -> PyErr {
    let found = match found.get_type().name() {
        Ok(found) => found.to_string(),
        Err(error) => return error,
    };
    PyTypeError::new_err(format!("`{name}`: expected {expected}, found {found}"))
}

/// Returns the value of an argument. `expected` describes it.
pub(crate) fn argument<'py, T: FromPyObjectOwned<'py>>(
    name: &str,
    expected: &str,
    value: &Bound<'py, PyAny>,
) -> PyResult<T> {
    value
        .extract()
        .map_err(|_| wrong_type(name, expected, value))
}

/// Returns a number of at least 1. One that is larger than all texts is a limit that nothing reaches.
pub(crate) fn count(name: &str, value: &Bound<'_, PyAny>) -> PyResult<NonZeroUsize> {
    if !value.is_instance_of::<PyInt>() {
        return Err(wrong_type(name, "a whole number", value));
    }
    if !value.gt(0)? {
        return Err(error::value(format!(
            "`{name}`: found {value}, expected a whole number of at least 1"
        )));
    }
    Ok(value.extract().unwrap_or(NonZeroUsize::MAX))
}

/// Returns the dialect of the argument `dialect`.
pub(crate) fn dialect_of<'d>(
    dialect: Option<&'d Bound<'_, PyAny>>,
) -> PyResult<Option<&'d Dialect>> {
    let Some(dialect) = dialect else {
        return Ok(None);
    };
    let found = dialect.cast::<Dialect>();
    found
        .map(|dialect| Some(dialect.get()))
        .map_err(|_| wrong_type("dialect", "a Dialect, such as `Dialect.block()`", dialect))
}

/// Returns the bytes of a `str` (as UTF-8), `bytes` or `bytearray`.
///
/// A lone surrogate of a `str` is not a character. Its bytes are those of Python's error handler `surrogatepass`, which the
/// parser replaces like all bytes that are not UTF-8.
pub(crate) fn bytes<'p>(name: &str, text: &'p Bound<'_, PyAny>) -> PyResult<Cow<'p, [u8]>> {
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
    Err(wrong_type(name, "str or bytes", text))
}

/// A text argument. Lone surrogates and bytes that are not UTF-8 are replaced, as the parser replaces them.
#[derive(Default)]
pub(crate) struct Lossy(pub(crate) String);

impl FromPyObject<'_, '_> for Lossy {
    type Error = PyErr;

    fn extract(object: Borrowed<'_, '_, PyAny>) -> PyResult<Self> {
        let bytes = bytes("text", &object)?;
        Ok(Self(String::from_utf8_lossy(&bytes).into_owned()))
    }
}
