//! The members of a JSON object, and in words what is wrong with them.

use serde_json::{Map, Value};

/// Takes a text out of an object; `None` if it is not there or null.
///
/// # Errors
/// Says in a phrase that something else stands there.
pub(crate) fn text(object: &mut Map<String, Value>, key: &str) -> Result<Option<String>, String> {
    match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("its `{key}` is no string")),
    }
}

/// Takes a list out of an object; empty if it is not there or null.
///
/// # Errors
/// Says in a phrase that something else stands there.
pub(crate) fn list(object: &mut Map<String, Value>, key: &str) -> Result<Vec<Value>, String> {
    match object.remove(key) {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => Ok(items),
        Some(_) => Err(format!("its `{key}` are no list")),
    }
}

/// Takes a whole number from 0 out of an object; `None` if it is not there or null.
///
/// # Errors
/// Says in a phrase that something else stands there.
pub(crate) fn count(object: &mut Map<String, Value>, key: &str) -> Result<Option<u64>, String> {
    match object.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64() {
            Some(count) => Ok(Some(count)),
            None => Err(format!("its `{key}` is no whole number from 0")),
        },
    }
}

/// The members of a value that should be an object.
///
/// # Errors
/// Says in a phrase that it is none.
pub(crate) fn object(value: Value) -> Result<Map<String, Value>, String> {
    match value {
        Value::Object(object) => Ok(object),
        _ => Err("it is no object".to_owned()),
    }
}
