//! Input of `parse --jsonl`.

use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::text::json_error::in_line;
use crate::text::json_line::{JsonLine, text_of};

#[derive(Deserialize)]
struct Object<'l> {
    #[serde(borrow, default, deserialize_with = "any_value")]
    id: Option<&'l RawValue>,
    #[serde(borrow, default)]
    text: Option<&'l RawValue>,
}

/// Accepts any value, including `null`.
fn any_value<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

/// Parses a line: a string, or an object with the key `text`. Returns its `id`, unchanged, and its text or an error
/// message.
pub(super) fn read_line(line: &[u8]) -> (Option<&RawValue>, Result<String, String>) {
    let line = match JsonLine::parse(line) {
        Ok(JsonLine::Object(line)) => line,
        Ok(JsonLine::Text(text)) => return (None, Ok(text)),
        Err(error) => return (None, Err(error)),
    };
    match serde_json::from_str(line) {
        Err(error) => (None, Err(in_line(&error))),
        Ok(Object { id, text: None }) => (id, Err("missing key `text`".to_owned())),
        Ok(Object { id, text: Some(it) }) => (id, text_of("text", it.get())),
    }
}

/// The output for a line.
#[derive(Serialize)]
pub(super) struct Answer<'a, T: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) id: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(super) body: T,
}
