//! The server's answers for the replies of a scenario.

use std::time::Duration;

use plaincall_testkit::model_server::{Head, Script, Then, chunk};
use serde_json::{Value, json};

use crate::scenarios::scenario::{More, Reply};

/// The default number of characters of a delta.
const DELTA: usize = 40;

/// Returns the server's answer to a request, and its text in the dialect.
pub(crate) fn script(reply: &Reply, spelled: impl Fn(&str) -> String) -> (Script, String) {
    let plain;
    let more = match reply {
        Reply::Text(text) => {
            plain = More {
                text: text.clone(),
                ..More::default()
            };
            &plain
        }
        Reply::More(more) => more,
    };
    let text = spelled(&more.text);
    let mut script = match more.status {
        Some(status) => {
            let mut script = Script::json(status, &json!({"error": {"message": more.body}}));
            if let Some(seconds) = &more.retry_after {
                script = script.header("retry-after", seconds);
            }
            script
        }
        None => stream(more, &text),
    };
    match &mut script.head {
        Some(head) => head.after = Duration::from_millis(more.after_ms),
        None => assert_eq!(more.after_ms, 0, "what never comes has no time"),
    }
    (script, text)
}

fn stream(more: &More, text: &str) -> Script {
    let mut pieces = Vec::new();
    if !more.reasoning.is_empty() {
        pieces.push(chunk(
            &json!({"reasoning_content": more.reasoning}),
            &Value::Null,
        ));
    }
    let characters: Vec<char> = text.chars().collect();
    for delta in characters.chunks(more.delta.unwrap_or(DELTA)) {
        let delta: String = delta.iter().collect();
        pieces.push(chunk(&json!({"content": delta}), &Value::Null));
    }
    let end = more.end.as_deref().unwrap_or("stop");
    let reason = match end {
        "none" | "open" | "break" | "reset" | "stall" | "error" => Value::Null,
        "no done" => json!("stop"),
        reason => json!(reason),
    };
    if !reason.is_null() {
        pieces.push(chunk(&json!({}), &reason));
    }
    if let Some([input, output]) = more.usage {
        let usage = json!({"prompt_tokens": input, "completion_tokens": output});
        pieces.push(format!("data: {}\n\n", json!({"choices": [], "usage": usage})).into());
    }
    if end == "error" {
        pieces.push(b"data: {\"error\": {\"message\": \"the engine died\"}}\n\n".to_vec());
    }
    if !matches!(
        end,
        "no done" | "open" | "break" | "reset" | "stall" | "error"
    ) {
        pieces.push(b"data: [DONE]\n\n".to_vec());
    }
    let then = match end {
        "break" => Then::Break,
        "reset" => Then::Reset,
        "stall" => Then::Stall,
        _ => Then::End,
    };
    if pieces.is_empty() && then != Then::End {
        return Script::nothing(then);
    }
    let head = Head::new(200).header("content-type", "text/event-stream");
    let count = pieces.len();
    Script::new(head, pieces).only(count, then)
}
