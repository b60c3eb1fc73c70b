//! Lines of JSON Lines with one text each.

use crate::text::json_error::in_line;

/// A line: a text as a JSON string, or an object with more.
pub(crate) enum JsonLine<'l> {
    Text(String),
    /// The JSON text, which may be invalid.
    Object(&'l str),
}

impl<'l> JsonLine<'l> {
    /// Reads a line. Returns an error message for one that is neither.
    pub(crate) fn parse(line: &'l [u8]) -> Result<Self, String> {
        let line = str::from_utf8(line)
            .map_err(|error| format!("not UTF-8 at byte {}", error.valid_up_to() + 1))?;
        let content = line.trim_ascii_start();
        if content.is_empty() {
            return Err("the line is empty".to_owned());
        }
        if content.starts_with('{') {
            return Ok(Self::Object(line));
        }
        let text = serde_json::from_str(line);
        text.map(Self::Text).map_err(|error| in_line(&error))
    }
}

/// Returns the text that is the value of a key of an object, or an error message.
pub(crate) fn text_of(key: &str, value: &str) -> Result<String, String> {
    serde_json::from_str(value)
        .map_err(|error| format!("the value of `{key}`: {}", in_line(&error)))
}
