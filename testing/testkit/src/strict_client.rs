//! A client that checks every rule of the protocol.

use std::collections::HashSet;

use plaincall_wire::sse::Decoder;
use serde_json::Value;

/// An answer as a client assembled it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recorded {
    /// The text of the answer.
    pub content: String,
    /// The reasoning.
    pub reasoning: String,
    /// The calls, including those with invalid arguments.
    pub calls: Vec<RecordedCall>,
    /// The finish reason.
    pub finish_reason: Option<String>,
    /// The usage.
    pub usage: Option<Value>,
    /// The message of an error event.
    pub error: Option<String>,
}

/// A call as a client assembled it.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RecordedCall {
    /// The id, from its first delta.
    pub id: String,
    /// The name of the function, from its first delta.
    pub name: String,
    /// The text of its arguments, from all deltas.
    pub arguments: String,
}

impl Recorded {
    /// Returns the name and arguments of the calls with valid arguments.
    pub fn readable(&self) -> Vec<(&str, &str)> {
        let is_json = |call: &&RecordedCall| {
            let value: Result<Value, _> = serde_json::from_str(&call.arguments);
            value.is_ok()
        };
        let calls = self.calls.iter().filter(is_json);
        calls.map(|call| (&*call.name, &*call.arguments)).collect()
    }
}

/// Reads a whole stream of the gateway.
///
/// # Panics
/// Panics if it breaks a rule of the protocol.
pub fn read_answer(bytes: &[u8], includes_usage: bool) -> Recorded {
    let mut recorded = Recorded::default();
    let mut decoder = Decoder::new();
    let events: Vec<String> = decoder
        .feed(bytes)
        .map(|event| event.expect("an event").data.into_owned())
        .collect();
    assert!(
        decoder.finish().expect("no more").is_none(),
        "an event that is not ended"
    );
    let last = events.len().checked_sub(1).expect("a terminal event");
    let mut ids = HashSet::new();
    let mut first_head: Option<(Value, Value, Value)> = None;
    for (place, data) in events.iter().enumerate() {
        if data == "[DONE]" {
            assert_eq!(place, last, "[DONE] is the last event");
            assert!(
                recorded.finish_reason.is_some(),
                "a finish reason before [DONE]"
            );
            continue;
        }
        let chunk: Value = serde_json::from_str(data).expect("JSON");
        if let Some(error) = chunk.get("error") {
            assert_eq!(place, last, "an error is the last event");
            for field in ["message", "type", "param", "code"] {
                assert!(error.get(field).is_some(), "an error has `{field}`: {data}");
            }
            recorded.error = Some(error["message"].as_str().expect("a text").to_owned());
            continue;
        }
        assert_ne!(place, last, "the last event is terminal: {data}");
        assert_eq!(chunk["object"], "chat.completion.chunk");
        let now = (
            chunk["id"].clone(),
            chunk["created"].clone(),
            chunk["model"].clone(),
        );
        assert!(now.0.is_string() && now.1.is_u64() && now.2.is_string());
        assert_eq!(
            *first_head.get_or_insert(now.clone()),
            now,
            "the head is the same in all chunks"
        );
        let choices = chunk["choices"].as_array().expect("a list of choices");
        if choices.is_empty() {
            assert!(includes_usage, "usage that was not requested");
            assert!(
                recorded.finish_reason.is_some(),
                "usage comes after the finish reason"
            );
            assert!(recorded.usage.is_none(), "usage comes once");
            recorded.usage = Some(chunk["usage"].clone());
            continue;
        }
        assert_eq!(chunk.get("usage").is_some(), includes_usage);
        assert_eq!(choices.len(), 1);
        assert_eq!(choices[0]["index"], 0);
        assert!(
            recorded.finish_reason.is_none(),
            "nothing after the finish reason: {data}"
        );
        assert_eq!(
            place == 0,
            choices[0]["delta"]["role"] == "assistant",
            "the role comes first and once"
        );
        take_delta(&choices[0]["delta"], &mut recorded, &mut ids);
        if let Some(reason) = choices[0]["finish_reason"].as_str() {
            recorded.finish_reason = Some(reason.to_owned());
        }
    }
    match recorded.finish_reason.as_deref() {
        Some("tool_calls") => assert!(!recorded.calls.is_empty(), "`tool_calls` means calls"),
        Some("stop") => assert!(recorded.calls.is_empty(), "calls end with `tool_calls`"),
        _ => {}
    }
    recorded
}

fn take_delta(delta: &Value, recorded: &mut Recorded, ids: &mut HashSet<String>) {
    let text = |name: &str| delta.get(name).and_then(Value::as_str).unwrap_or_default();
    recorded.content += text("content");
    recorded.reasoning += text("reasoning_content");
    recorded.reasoning += text("reasoning");
    for piece in delta
        .get("tool_calls")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let index = piece["index"].as_u64().expect("an index");
        let index = usize::try_from(index).unwrap();
        let function = &piece["function"];
        let arguments = function["arguments"]
            .as_str()
            .expect("a piece of arguments");
        if index == recorded.calls.len() {
            let id = piece["id"].as_str().expect("an id in the first delta");
            assert!(!id.is_empty(), "an id is a text");
            assert!(ids.insert(id.to_owned()), "the id {id} twice");
            assert_eq!(piece["type"], "function");
            recorded.calls.push(RecordedCall {
                id: id.to_owned(),
                name: function["name"]
                    .as_str()
                    .expect("a name in the first delta")
                    .to_owned(),
                arguments: arguments.to_owned(),
            });
        } else {
            assert_eq!(
                index + 1,
                recorded.calls.len(),
                "calls come one after another, without gaps"
            );
            for field in ["id", "type"] {
                assert!(
                    piece.get(field).is_none(),
                    "`{field}` only in the first delta"
                );
            }
            assert!(
                function.get("name").is_none(),
                "`name` only in the first delta"
            );
            recorded.calls[index].arguments += arguments;
        }
    }
}
