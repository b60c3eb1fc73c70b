//! Recorded replies, which can be used instead of a model.

use serde_json::Value;

/// A recorded reply.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedReply {
    /// Its text.
    pub content: String,
    /// The finish reason. Default: `stop`.
    pub finish_reason: String,
}

/// An error in recorded replies.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ReplayError(String);

/// Reads recorded replies, one JSON document per line: a string, or an object with `content` and optionally `finish_reason`.
/// Empty lines are skipped.
///
/// # Errors
/// Returns an error if a line is neither, or if there is no reply.
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
        // Each line is a document of its own, so the error's line is always 1.
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
