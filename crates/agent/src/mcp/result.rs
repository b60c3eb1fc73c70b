//! Converts results of MCP calls to text.

use std::fmt::Write as _;

use plaincall::call::json::keep_digits;
use plaincall::{BoxError, ToolResult, tool::Failure};
use rmcp::model::{CallToolResult, ContentBlock, ResourceContents};
use serde_json::Value;

use super::secrets::Secrets;

/// The longest error message. A longer one becomes the output.
const LONGEST_ERROR: usize = 2 << 10;

/// Converts the result of a call: its texts and short notes about other content, without secrets. Keeps `limit` bytes.
pub(super) fn tool_result(result: &CallToolResult, limit: usize, secrets: &Secrets) -> ToolResult {
    let mut parts: Vec<String> = result.content.iter().map(block).collect();
    if let Some(structured) = &result.structured_content
        && !is_in_text(structured, &result.content)
    {
        parts.push(structured.to_string());
    }
    let mut text = String::new();
    for part in parts {
        if !text.is_empty() && !text.ends_with('\n') {
            text.push('\n');
        }
        text.push_str(&part);
    }
    let text = cut(secrets.redact(text), limit);
    if result.is_error != Some(true) {
        return Ok(text);
    }
    Err(if text.trim().is_empty() {
        failure("the tool failed without a message")
    } else if text.len() <= LONGEST_ERROR {
        failure(text)
    } else {
        Failure::new("the tool failed; the output has its message", Some(text)).into()
    })
}

pub(super) fn failure(message: impl Into<String>) -> BoxError {
    Failure::new(message, None).into()
}

/// Truncates a text and adds a note.
fn cut(mut text: String, limit: usize) -> String {
    let total = text.len();
    if total <= limit {
        return text;
    }
    let kept = text.floor_char_boundary(limit);
    text.truncate(kept);
    let line_end = if text.is_empty() || text.ends_with('\n') {
        ""
    } else {
        "\n"
    };
    let _ = writeln!(
        text,
        "{line_end}[output truncated: first {kept} of {total} bytes]"
    );
    text
}

/// Whether structured content is repeated as text.
fn is_in_text(structured: &Value, content: &[ContentBlock]) -> bool {
    content.iter().any(|block| match block {
        ContentBlock::Text(text) => {
            let text = keep_digits(&text.text);
            serde_json::from_str::<Value>(&text).is_ok_and(|value| value == *structured)
        }
        _ => false,
    })
}

fn block(block: &ContentBlock) -> String {
    match block {
        ContentBlock::Text(text) => text.text.clone(),
        ContentBlock::Image(image) => unseen("image", &image.mime_type, &image.data),
        ContentBlock::Audio(audio) => unseen("audio", &audio.mime_type, &audio.data),
        ContentBlock::Resource(embedded) => match &embedded.resource {
            ResourceContents::TextResourceContents { uri, text, .. } => {
                format!("[resource {uri}]\n{text}")
            }
            ResourceContents::BlobResourceContents {
                uri,
                mime_type,
                blob,
                ..
            } => {
                let kind = mime_type.as_deref().unwrap_or("of an unknown type");
                unseen(&format!("resource {uri}"), kind, blob)
            }
            _ => "[a resource of an unknown kind, not shown]".to_owned(),
        },
        ContentBlock::ResourceLink(link) => {
            let mut note = format!("[resource {}: {}", link.uri, link.name);
            if let Some(description) = &link.description {
                let _ = write!(note, ", {description}");
            }
            note.push_str("; only its URL was sent]");
            note
        }
        _ => "[content of an unknown kind, not shown]".to_owned(),
    }
}

/// A note for content that is not text. `data` is base64.
fn unseen(what: &str, kind: &str, data: &str) -> String {
    let padding = data.bytes().rev().take_while(|&byte| byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}, {kind}, {bytes} bytes, not shown]")
}
