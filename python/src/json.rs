//! JSON values as Python objects.

use plaincall_tool::json::parse;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyList, PyString};
use serde_json::{Map, Value};

use crate::error;

/// Converts a value: objects become `dict` in the same order, lists `list`.
pub(crate) fn to_python<'py>(py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    Ok(match value {
        Value::Null => py.None().into_bound(py),
        Value::Bool(value) => PyBool::new(py, *value).to_owned().into_any(),
        Value::Number(number) => {
            if let Some(number) = number.as_i64() {
                PyInt::new(py, number).into_any()
            } else if let Some(number) = number.as_u64() {
                PyInt::new(py, number).into_any()
            } else {
                PyFloat::new(py, number.as_f64().unwrap_or(f64::NAN)).into_any()
            }
        }
        Value::String(text) => PyString::new(py, text).into_any(),
        Value::Array(list) => {
            let items = PyList::empty(py);
            for item in list {
                items.append(to_python(py, item)?)?;
            }
            items.into_any()
        }
        Value::Object(object) => object_to_python(py, object)?.into_any(),
    })
}

pub(crate) fn object_to_python<'py>(
    py: Python<'py>,
    object: &Map<String, Value>,
) -> PyResult<Bound<'py, PyDict>> {
    let members = PyDict::new(py);
    for (key, value) in object {
        members.set_item(key, to_python(py, value)?)?;
    }
    Ok(members)
}

/// Converts a `dict`, or `None`.
pub(crate) fn of_python(
    what: &str,
    value: &Bound<'_, PyAny>,
) -> PyResult<Option<Map<String, Value>>> {
    if value.is_none() {
        return Ok(None);
    }
    let json = value.py().import("json")?;
    let text: String = json.call_method1("dumps", (value,))?.extract()?;
    object(what, &text).map(Some)
}

/// Reads the text of a JSON object, which the Python part of the package writes.
pub(crate) fn object(what: &str, json: &str) -> PyResult<Map<String, Value>> {
    match parse(json) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err(error::value(format!("{what} must be a JSON object"))),
        Err(error) => Err(error::value(format!(
            "{what} must be a JSON object: {error}"
        ))),
    }
}
