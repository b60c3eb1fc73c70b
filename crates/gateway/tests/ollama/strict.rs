//! A strict reader of Ollama's API.

use plaincall_testkit::strict_client::{Recorded, RecordedCall};
use plaincall_wire::ollama::ChatResponse;
use serde_json::{Value, json};

/// Reads a whole stream.
pub(crate) fn read_stream(bytes: &[u8]) -> Recorded {
    let text = std::str::from_utf8(bytes).expect("text");
    assert!(text.ends_with('\n'), "{text}");
    // Some clients split at these too.
    assert!(!text.contains(['\u{85}', '\u{2028}', '\u{2029}', '\r']));
    let mut recorded = Recorded::default();
    let lines: Vec<&str> = text.lines().collect();
    for (place, line) in lines.iter().enumerate() {
        let is_last = place + 1 == lines.len();
        let value: Value = serde_json::from_str(line).expect("JSON");
        if let Some(error) = value.get("error") {
            assert!(is_last, "{text}");
            check_error(line.as_bytes());
            recorded.error = error.as_str().map(str::to_owned);
            return recorded;
        }
        assert_eq!(value["done"], json!(is_last), "{text}");
        add(&mut recorded, line);
        let message = &value["message"];
        let is_empty = message["content"] == "" && message.as_object().unwrap().len() == 2;
        assert_eq!(is_empty, is_last, "{line}");
        if !is_last {
            assert_eq!(value.as_object().unwrap().len(), 4, "{line}");
        }
    }
    recorded
}

/// Reads a complete response.
pub(crate) fn read_complete(bytes: &[u8]) -> Recorded {
    let mut recorded = Recorded::default();
    let text = std::str::from_utf8(bytes).expect("text");
    add(&mut recorded, text);
    assert!(recorded.finish_reason.is_some(), "{text}");
    recorded
}

/// Checks the body of an error response.
pub(crate) fn check_error(body: &[u8]) {
    let body: Value = serde_json::from_slice(body).expect("JSON");
    let message = body["error"].as_str().unwrap();
    assert!(!message.is_empty() && body.as_object().unwrap().len() == 1);
}

/// Adds a response, or a line of a streamed one.
fn add(recorded: &mut Recorded, text: &str) {
    let response: ChatResponse<'_> = plaincall_wire::read(text.as_bytes()).expect("a response");
    assert!(response.unknown.iter().next().is_none(), "{text}");
    assert!(response.model.is_some(), "{text}");
    let created = response.created_at.expect("a time");
    assert!(created.len() == 20 && created.ends_with('Z'), "{text}");
    let message = response.message.expect("a message");
    assert!(message.unknown.iter().next().is_none(), "{text}");
    assert_eq!(message.role.as_deref(), Some("assistant"));
    recorded.content += &message.content.expect("a content");
    recorded.reasoning += message.thinking.as_deref().unwrap_or_default();
    for call in message.tool_calls.iter().flatten() {
        let function = call.function.as_ref().unwrap();
        let index = function.unknown.get("index").unwrap().text();
        assert_eq!(index, recorded.calls.len().to_string(), "{text}");
        let arguments: Value = function.arguments.as_ref().unwrap().text().parse().unwrap();
        assert!(arguments.is_object(), "{text}");
        recorded.calls.push(RecordedCall {
            id: call.id.as_deref().expect("an id").to_owned(),
            name: call.name().to_owned(),
            arguments: call.arguments().to_owned(),
        });
    }
    if response.done != Some(true) {
        return;
    }
    let counts = (response.prompt_eval_count, response.eval_count);
    assert_eq!(counts.0.is_some(), counts.1.is_some());
    recorded.usage = counts.0.map(|_| json!([counts.0, counts.1]));
    assert_eq!(response.total_duration, response.eval_duration);
    recorded.finish_reason = match &*response.done_reason.expect("a reason") {
        "stop" if !recorded.calls.is_empty() => Some("tool_calls".to_owned()),
        other => Some(other.to_owned()),
    };
}
