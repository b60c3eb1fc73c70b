//! Recorded replies: a file that stands in the place of a model.

use std::error::Error;
use std::fmt;

use serde_json::Value;

/// A reply that was recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedReply {
    /// Its text.
    pub content: String,
    /// Why it ended: `stop` if nothing else is said.
    pub finish_reason: String,
}

/// Why a text holds no recorded replies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplayError(String);

impl fmt::Display for ReplayError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl Error for ReplayError {}

/// Reads recorded replies, one JSON document a line: a text, or an object with `content` and perhaps `finish_reason`.
/// Empty lines are passed over.
///
/// # Errors
/// Says which line is neither, or that there is none.
pub fn read_replies(text: &str) -> Result<Vec<RecordedReply>, ReplayError> {
    let mut replies = Vec::new();
    for (number, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let reply = recorded(line);
        let wrong = |message| ReplayError(format!("line {}: {message}", number + 1));
        replies.push(reply.map_err(wrong)?);
    }
    if replies.is_empty() {
        return Err(ReplayError("it contains no replies".to_owned()));
    }
    Ok(replies)
}

fn recorded(line: &str) -> Result<RecordedReply, String> {
    let value: Value = serde_json::from_str(line).map_err(|error| {
        // Its own line is always the first.
        let column = error.column();
        format!("invalid JSON at column {column}; a reply is a JSON string, or an object with a string `content`")
    })?;
    let (content, reason) = match &value {
        Value::String(text) => (Some(text.as_str()), None),
        Value::Object(object) => (
            object.get("content").and_then(Value::as_str),
            object.get("finish_reason").and_then(Value::as_str),
        ),
        _ => (None, None),
    };
    let content =
        content.ok_or("a reply is a JSON string, or an object with a text as `content`")?;
    Ok(RecordedReply {
        content: content.to_owned(),
        finish_reason: reason.unwrap_or("stop").to_owned(),
    })
}
