//! Lines of JSON, each a text of its own.

use std::borrow::Cow;

use serde::de::IgnoredAny;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::text::json_error::cause;

/// A text and the id that it came with.
#[derive(Debug)]
pub(crate) struct Record<'l> {
    /// Exactly as it was written.
    pub(crate) id: Option<&'l RawValue>,
    pub(crate) text: String,
}

/// What is wrong with a line, and the id that it came with.
#[derive(Debug)]
pub(crate) struct BadLine<'l> {
    pub(crate) id: Option<&'l RawValue>,
    pub(crate) message: String,
}

impl BadLine<'_> {
    fn new(message: impl Into<String>) -> Self {
        Self {
            id: None,
            message: message.into(),
        }
    }
}

#[derive(Deserialize)]
struct Object<'l> {
    #[serde(borrow, default, deserialize_with = "whatever")]
    id: Option<&'l RawValue>,
    #[serde(borrow, default, deserialize_with = "whatever")]
    text: Option<&'l RawValue>,
}

/// Whatever stands there, `null` included.
fn whatever<'de, D: Deserializer<'de>>(input: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(input).map(Some)
}

/// Reads a line: a string, or an object with the key `text`.
pub(crate) fn read_line(line: &[u8]) -> Result<Record<'_>, BadLine<'_>> {
    let line = str::from_utf8(line).map_err(|error| {
        let column = error.valid_up_to() + 1;
        BadLine::new(format!("not UTF-8 at byte {column}"))
    })?;
    match line.trim_ascii_start().chars().next() {
        None => Err(BadLine::new("the line is empty")),
        Some('"') => {
            let text = serde_json::from_str(line).map_err(|error| BadLine::new(no_json(&error)))?;
            Ok(Record { id: None, text })
        }
        Some('{') => {
            let object: Object<'_> =
                serde_json::from_str(line).map_err(|error| BadLine::new(no_json(&error)))?;
            let bad = |message: Cow<'_, str>| BadLine {
                id: object.id,
                message: message.into_owned(),
            };
            let Some(text) = object.text else {
                return Err(bad("the object has no key `text`".into()));
            };
            if !text.get().starts_with('"') {
                return Err(bad("the value of `text` is no string".into()));
            }
            let text = serde_json::from_str(text.get())
                .map_err(|error| bad(format!("the value of `text`: {}", no_json(&error)).into()))?;
            Ok(Record {
                id: object.id,
                text,
            })
        }
        Some(_) => match serde_json::from_str::<IgnoredAny>(line) {
            Ok(_) => Err(BadLine::new(
                "neither a string nor an object with the key `text`",
            )),
            Err(error) => Err(BadLine::new(no_json(&error))),
        },
    }
}

/// What is wrong, with the place inside the line.
fn no_json(error: &serde_json::Error) -> String {
    format!("not JSON: {} at byte {}", cause(error), error.column())
}

/// What is printed for a line that was read.
#[derive(Serialize)]
pub(crate) struct Answer<'a, T: Serialize> {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) id: Option<&'a RawValue>,
    #[serde(flatten)]
    pub(crate) body: T,
}

/// What is printed for a line that is wrong.
#[derive(Serialize)]
pub(crate) struct ErrorBody<'a> {
    pub(crate) error: &'a str,
}

/// The calls of a line in the form of `OpenAI`.
#[derive(Serialize)]
pub(crate) struct ToolCallsBody<'a> {
    pub(crate) tool_calls: &'a [plaincall_call::OpenAiCall],
}
