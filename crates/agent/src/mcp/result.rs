//! Converts results of MCP calls to text.

use std::fmt::Write as _;

use plaincall::tool::json::keep_digits;
use plaincall::{BoxError, ToolResult, tool::Failure};
use serde_json::Value;

use super::clipped;
use super::secrets::Secrets;
use crate::text::end_line;

/// The longest error message. A longer one becomes the output.
const LONGEST_ERROR: usize = 2 << 10;

/// Converts the result of a call: its texts and short notes about other content, without secrets. Keeps `limit` bytes.
///
/// The result may be incomplete: a part that cannot be shown becomes a note.
pub(super) fn tool_result(result: &Value, limit: usize, secrets: &Secrets) -> ToolResult {
    let content = match &result["content"] {
        Value::Array(content) => content.as_slice(),
        Value::Null => &[],
        content => std::slice::from_ref(content),
    };
    let mut parts: Vec<String> = content.iter().map(block).collect();
    let structured = &result["structuredContent"];
    if !is_in_content(structured, content) {
        parts.push(structured.to_string());
    }
    let mut text = String::new();
    for part in parts {
        end_line(&mut text);
        text.push_str(&part);
    }
    let text = cut(secrets.redact(text), limit);
    if result["isError"] != true {
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
    end_line(&mut text);
    let _ = writeln!(text, "[output truncated: first {kept} of {total} bytes]");
    text
}

/// Whether structured content is null or repeats the content, possibly as the value of its only key.
fn is_in_content(structured: &Value, content: &[Value]) -> bool {
    let inner = match structured {
        Value::Object(members) if members.len() == 1 => members.values().next(),
        _ => None,
    };
    [Some(structured), inner].into_iter().flatten().any(|one| {
        let is_repeated = |block| repeats(one, block);
        one.is_null()
            || content.iter().any(is_repeated)
            || one.as_array().is_some_and(|list| {
                let pairs = || list.iter().zip(content);
                list.len() == content.len() && pairs().all(|(item, block)| repeats(item, block))
            })
    })
}

/// Whether a value is a block of content, or its text, or the JSON in its text.
fn repeats(value: &Value, block: &Value) -> bool {
    let text = block["text"].as_str().unwrap_or_default();
    let is_json = || serde_json::from_str::<Value>(&keep_digits(text)).is_ok_and(|it| it == *value);
    value == block || (block["type"] == "text" && (*value == *text || is_json()))
}

fn block(block: &Value) -> String {
    let field = |name: &str| block[name].as_str();
    match (field("type").unwrap_or_default(), field("text")) {
        ("text", Some(text)) => text.to_owned(),
        (kind @ ("image" | "audio"), _) => unseen(kind, field("mimeType"), field("data")),
        ("resource", _) => {
            let resource = &block["resource"];
            let field = |name: &str| resource[name].as_str();
            let uri = field("uri").unwrap_or("without a URI");
            match field("text") {
                Some(text) => format!("[resource {uri}]\n{text}"),
                None => unseen(&format!("resource {uri}"), field("mimeType"), field("blob")),
            }
        }
        ("resource_link", _) => {
            let uri = field("uri").unwrap_or("without a URI");
            let mut note = format!("[resource {uri}");
            for (sign, name) in [(": ", "name"), (", ", "description")] {
                if let Some(text) = field(name) {
                    let _ = write!(note, "{sign}{text}");
                }
            }
            note.push_str("; only its URL was sent]");
            note
        }
        // Any other content is shown as it is, because it may be the reason of an error.
        _ if block.is_string() => block.as_str().unwrap_or_default().to_owned(),
        _ => format!(
            "[content of an unknown kind: {}]",
            clipped(&block.to_string())
        ),
    }
}

/// A note for content that is not text. `data` is base64.
fn unseen(what: &str, kind: Option<&str>, data: Option<&str>) -> String {
    let kind = kind.unwrap_or("of an unknown type");
    let data = data.unwrap_or_default();
    let padding = data.bytes().rev().take_while(|&byte| byte == b'=').count();
    let bytes = (data.len() / 4 * 3).saturating_sub(padding);
    format!("[{what}, {kind}, {bytes} bytes, not shown]")
}
