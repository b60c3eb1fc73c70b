//! Errors in JSON texts, worded for their author.

use std::fmt;

/// The maximum length of a message, in bytes, since it may quote the text.
const LONGEST: usize = 200;

/// An error in a JSON text.
///
/// ```
/// use plaincall_wire::{openai::ChatCompletionRequest, read};
///
/// let error = read::<ChatCompletionRequest>(br#"{"messages":[{"role":"user","content":7}]}"#).unwrap_err();
/// assert_eq!(error.path, "messages[0].content");
/// assert_eq!(error.to_string(), "messages[0].content: expected a string or a list of parts, found integer `7` (line 1, column 39)");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ReadError {
    /// The field, such as `messages[2].content`; empty for the entire text.
    pub path: String,
    /// The message.
    pub message: String,
    /// The line, from 1; 0 if unknown.
    pub line: usize,
    /// The column in bytes, from 1.
    pub column: usize,
}

impl ReadError {
    pub(crate) fn new(error: &serde_json::Error) -> Self {
        let text = error.to_string();
        let place = format!(" at line {} column {}", error.line(), error.column());
        let mut rest = text.strip_suffix(&place).unwrap_or(&text);
        let mut path = String::new();
        while let Some((step, inner)) = rest.split_once(": ").filter(|(step, _)| is_step(step)) {
            if !path.is_empty() && !step.starts_with('[') {
                path.push('.');
            }
            path.push_str(step);
            rest = inner;
        }
        Self {
            path,
            message: shorten(&phrase(rest)),
            line: error.line(),
            column: error.column(),
        }
    }
}

impl ReadError {
    /// Moves the error into this field.
    pub(crate) fn under(mut self, field: &str) -> Self {
        let separator = if self.path.is_empty() || self.path.starts_with('[') {
            ""
        } else {
            "."
        };
        self.path.insert_str(0, separator);
        self.path.insert_str(0, field);
        self
    }
}

/// Moves an error into this field or item.
pub(crate) fn inside<E: serde::de::Error>(step: impl fmt::Display, error: &E) -> E {
    E::custom(format_args!("{step}: {error}"))
}

/// Returns whether this is a field's name or an item's index. Other beginnings of errors contain a space.
fn is_step(text: &str) -> bool {
    let is_name = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let is_number = text.starts_with('[') && text.ends_with(']');
    is_number || (!text.is_empty() && text.bytes().all(is_name))
}

fn phrase(message: &str) -> String {
    let mismatch = message
        .strip_prefix("invalid type: ")
        .or_else(|| message.strip_prefix("invalid value: "));
    if let Some((found, expected)) = mismatch.and_then(|text| text.rsplit_once(", expected ")) {
        let found = match found {
            "map" => "an object",
            "sequence" => "a list",
            other => other,
        };
        return format!("expected {expected}, found {found}");
    }
    match message.strip_prefix("EOF while parsing ") {
        Some(part) => format!("the text ends inside {part}"),
        None => message.to_owned(),
    }
}

fn shorten(message: &str) -> String {
    if message.len() <= LONGEST {
        return message.to_owned();
    }
    // The end of the message has the expectation; the middle is a quotation.
    let half = LONGEST / 2;
    let head = (0..=half).rev().find_map(|end| message.get(..end));
    let tail = (message.len() - half..=message.len()).find_map(|start| message.get(start..));
    format!(
        "{} … {}",
        head.unwrap_or_default(),
        tail.unwrap_or_default()
    )
}

impl fmt::Display for ReadError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if !self.path.is_empty() {
            write!(formatter, "{}: ", self.path)?;
        }
        formatter.write_str(&self.message)?;
        if self.line > 0 {
            write!(formatter, " (line {}, column {})", self.line, self.column)?;
        }
        Ok(())
    }
}

impl std::error::Error for ReadError {}
