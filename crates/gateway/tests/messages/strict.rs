//! A client that checks every rule of the API's events.

use std::collections::HashSet;

use plaincall_testkit::strict_client::{Recorded, RecordedCall};
use plaincall_wire::sse::Decoder;
use serde_json::{Value, json};

/// A message as a client assembled it.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Message {
    /// The blocks, with the text of the input instead of the input.
    pub(crate) blocks: Vec<Value>,
    pub(crate) stop_reason: Option<String>,
    pub(crate) stop_sequence: Option<String>,
    pub(crate) usage: Value,
    pub(crate) model: String,
    /// The type and the message of an error event.
    pub(crate) error: Option<(String, String)>,
}

impl Message {
    /// Returns the texts of all blocks of this kind.
    pub(crate) fn text(&self, kind: &str) -> String {
        let blocks = self.blocks.iter().filter(|block| block["type"] == kind);
        blocks.map(|block| block[kind].as_str().unwrap()).collect()
    }

    /// Returns the names and inputs of the calls, as texts. White space may follow an input.
    pub(crate) fn calls(&self) -> Vec<(String, String)> {
        let calls = self
            .blocks
            .iter()
            .filter(|block| block["type"] == "tool_use");
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        calls
            .map(|call| {
                (
                    text(&call["name"]),
                    text(&call["input"]).trim_end().to_owned(),
                )
            })
            .collect()
    }

    /// Returns the message in the form of an assembled chat completion.
    pub(crate) fn recorded(self) -> Recorded {
        let calls = self.blocks.iter();
        let calls = calls
            .filter(|block| block["type"] == "tool_use")
            .map(|call| {
                let text = |field: &str| call[field].as_str().unwrap().to_owned();
                RecordedCall {
                    id: text("id"),
                    name: text("name"),
                    arguments: text("input"),
                }
            });
        let reason = self.stop_reason.as_deref().map(|reason| match reason {
            "tool_use" => "tool_calls",
            "max_tokens" | "model_context_window_exceeded" => "length",
            "refusal" => "content_filter",
            _ => "stop",
        });
        Recorded {
            content: self.text("text"),
            reasoning: self.text("thinking"),
            calls: calls.collect(),
            finish_reason: reason.map(str::to_owned),
            usage: Some(self.usage).filter(|usage| !usage.is_null()),
            error: self.error.map(|(_, message)| message),
        }
    }
}

/// Reads a whole stream. Panics if it breaks a rule of the protocol.
pub(crate) fn read_stream(bytes: &[u8]) -> Message {
    let mut message = Message::default();
    let mut decoder = Decoder::new();
    let events: Vec<(String, Value)> = decoder
        .feed(bytes)
        .map(|event| {
            let event = event.expect("an event");
            let data: Value = serde_json::from_str(&event.data).expect("JSON");
            let name = event.name.expect("a name").into_owned();
            assert_eq!(data["type"], *name, "the type is the name");
            (name, data)
        })
        .collect();
    assert!(
        decoder.finish().unwrap().is_none(),
        "an event that is not ended"
    );
    let last = events.len().checked_sub(1).expect("a terminal event");
    let mut open: Option<Value> = None;
    let mut is_signed = false;
    let mut ids = HashSet::new();
    for (place, (name, data)) in events.iter().enumerate() {
        assert!(message.error.is_none(), "nothing follows an error");
        let is_over = message.stop_reason.is_some();
        assert!(!is_over || name == "message_stop" || name == "ping");
        assert_eq!(
            name == "message_start",
            place == 0 && name != "error",
            "{name} at {place}"
        );
        match name.as_str() {
            "ping" => assert_eq!(*data, json!({"type": "ping"})),
            "message_start" => {
                let start = &data["message"];
                assert!(start["id"].as_str().unwrap().starts_with("msg_"));
                assert_eq!(start["type"], "message");
                assert_eq!(start["role"], "assistant");
                assert_eq!(start["content"], json!([]));
                for field in ["stop_reason", "stop_sequence"] {
                    assert_eq!(start.get(field), Some(&Value::Null));
                }
                assert!(start["usage"]["input_tokens"].is_u64());
                assert!(start["usage"]["output_tokens"].is_u64());
                start["model"]
                    .as_str()
                    .unwrap()
                    .clone_into(&mut message.model);
            }
            "content_block_start" => {
                assert!(open.is_none(), "a block is open");
                assert_eq!(data["index"], message.blocks.len());
                let mut block = data["content_block"].clone();
                let empty = match block["type"].as_str().unwrap() {
                    "text" => json!({"type": "text", "text": ""}),
                    "thinking" => json!({"type": "thinking", "thinking": "", "signature": ""}),
                    "tool_use" => {
                        let id = block["id"].as_str().unwrap();
                        assert!(!id.is_empty() && ids.insert(id.to_owned()));
                        assert!(
                            id.bytes()
                                .all(|b| b.is_ascii_alphanumeric() || b"_-".contains(&b))
                        );
                        json!({"type": "tool_use", "id": id, "name": block["name"], "input": {}})
                    }
                    other => panic!("a block of kind {other}"),
                };
                assert_eq!(block, empty);
                if block["type"] == "tool_use" {
                    block["input"] = json!("");
                }
                is_signed = false;
                open = Some(block);
            }
            "content_block_delta" => {
                let block = open.as_mut().expect("an open block");
                assert_eq!(data["index"], message.blocks.len());
                let delta = &data["delta"];
                let (kind, field, target) = match block["type"].as_str().unwrap() {
                    "text" => ("text_delta", "text", "text"),
                    "thinking" if delta["type"] == "signature_delta" => {
                        is_signed = true;
                        ("signature_delta", "signature", "signature")
                    }
                    "thinking" => {
                        assert!(!is_signed, "the signature is last");
                        ("thinking_delta", "thinking", "thinking")
                    }
                    _ => ("input_json_delta", "partial_json", "input"),
                };
                assert_eq!(delta["type"], kind);
                assert_eq!(delta.as_object().unwrap().len(), 2);
                let piece = delta[field].as_str().unwrap();
                assert!(!piece.is_empty() || field == "signature");
                let text = block[target].as_str().unwrap().to_owned() + piece;
                block[target] = json!(text);
            }
            "content_block_stop" => {
                assert_eq!(data["index"], message.blocks.len());
                let block = open.take().expect("an open block");
                assert_eq!(block["type"] == "thinking", is_signed);
                let text = if block["type"] == "tool_use" {
                    "input"
                } else {
                    block["type"].as_str().unwrap()
                };
                let may_be_empty = block["type"] == "tool_use";
                assert!(may_be_empty || block[text] != "", "no block is empty");
                message.blocks.push(block);
            }
            "message_delta" => {
                assert!(open.is_none(), "a block is open");
                let delta = &data["delta"];
                let reason = delta["stop_reason"].as_str().expect("a stop reason");
                message.stop_reason = Some(reason.to_owned());
                message.stop_sequence = delta["stop_sequence"].as_str().map(str::to_owned);
                assert!(delta.get("stop_sequence").is_some());
                assert!(data["usage"]["output_tokens"].is_u64());
                message.usage = data["usage"].clone();
            }
            "message_stop" => {
                assert_eq!(place, last);
                assert!(is_over, "a stop reason before the end");
            }
            "error" => {
                assert_eq!(place, last, "an error is the last event");
                message.error = Some(error(data));
                message.blocks.extend(open.take());
            }
            other => panic!("an event named {other}"),
        }
    }
    let has_error = message.error.is_some();
    assert!(
        has_error || events[last].0 == "message_stop",
        "a terminal event"
    );
    check_end(&message);
    message
}

/// Reads a complete response.
pub(crate) fn read_complete(bytes: &[u8]) -> Message {
    let value: Value = serde_json::from_slice(bytes).expect("JSON");
    if value["type"] == "error" {
        return Message {
            error: Some(error(&value)),
            ..Message::default()
        };
    }
    assert!(value["id"].as_str().unwrap().starts_with("msg_"));
    assert_eq!(value["type"], "message");
    assert_eq!(value["role"], "assistant");
    assert!(value.get("stop_sequence").is_some());
    for field in ["input_tokens", "output_tokens"] {
        assert!(value["usage"][field].is_u64());
    }
    let mut blocks = value["content"].as_array().unwrap().clone();
    for block in blocks
        .iter_mut()
        .filter(|block| block["type"] == "tool_use")
    {
        // What is not JSON is a string: the input of a truncated call of the model server.
        let input = match &block["input"] {
            Value::String(text) => text.clone(),
            input => {
                assert!(input.is_object());
                input.to_string()
            }
        };
        block["input"] = json!(input);
    }
    let message = Message {
        blocks,
        stop_reason: Some(value["stop_reason"].as_str().unwrap().to_owned()),
        stop_sequence: value["stop_sequence"].as_str().map(str::to_owned),
        usage: value["usage"].clone(),
        model: value["model"].as_str().unwrap().to_owned(),
        error: None,
    };
    check_end(&message);
    message
}

fn check_end(message: &Message) {
    let has_calls = !message.calls().is_empty();
    // Only a truncated call has no input.
    let is_whole = matches!(
        message.stop_reason.as_deref(),
        Some("tool_use" | "end_turn" | "stop_sequence")
    );
    let mut blocks = message.blocks.iter().rev().peekable();
    blocks.next_if(|_| !is_whole);
    assert!(blocks.all(|block| block["input"] != ""), "{message:?}");
    match message.stop_reason.as_deref() {
        Some("tool_use") => assert!(has_calls, "{message:?}"),
        Some("end_turn" | "stop_sequence") => assert!(!has_calls, "{message:?}"),
        None | Some("max_tokens" | "refusal" | "model_context_window_exceeded") => {}
        Some(other) => panic!("a stop reason {other}"),
    }
}

fn error(value: &Value) -> (String, String) {
    assert_eq!(value["type"], "error");
    let error = value["error"].as_object().unwrap();
    assert_eq!(error.len(), 2, "{error:?}");
    let text = |field: &str| error[field].as_str().unwrap().to_owned();
    (text("type"), text("message"))
}
