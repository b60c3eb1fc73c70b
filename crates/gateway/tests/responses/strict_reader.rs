//! A client that checks every rule of a streamed response.

use std::collections::HashSet;

use plaincall_testkit::strict_client::{Recorded, RecordedCall};
use plaincall_wire::sse::Decoder;
use serde_json::{Value, json};

/// The fields of each kind of event besides `type` and `sequence_number`.
const FIELDS: [(&str, &[&str]); 18] = [
    ("response.created", &["response"]),
    ("response.in_progress", &["response"]),
    ("response.completed", &["response"]),
    ("response.incomplete", &["response"]),
    ("response.failed", &["response"]),
    ("response.output_item.added", &["output_index", "item"]),
    ("response.output_item.done", &["output_index", "item"]),
    (
        "response.content_part.added",
        &["item_id", "output_index", "content_index", "part"],
    ),
    (
        "response.content_part.done",
        &["item_id", "output_index", "content_index", "part"],
    ),
    (
        "response.output_text.delta",
        &[
            "item_id",
            "output_index",
            "content_index",
            "delta",
            "logprobs",
        ],
    ),
    (
        "response.output_text.done",
        &[
            "item_id",
            "output_index",
            "content_index",
            "text",
            "logprobs",
        ],
    ),
    (
        "response.refusal.delta",
        &["item_id", "output_index", "content_index", "delta"],
    ),
    (
        "response.refusal.done",
        &["item_id", "output_index", "content_index", "refusal"],
    ),
    (
        "response.reasoning_text.delta",
        &["item_id", "output_index", "content_index", "delta"],
    ),
    (
        "response.reasoning_text.done",
        &["item_id", "output_index", "content_index", "text"],
    ),
    (
        "response.function_call_arguments.delta",
        &["item_id", "output_index", "delta"],
    ),
    (
        "response.function_call_arguments.done",
        &["item_id", "output_index", "name", "arguments"],
    ),
    (
        "response.custom_tool_call_input.delta",
        &["item_id", "output_index", "delta"],
    ),
];

/// An item that is being received.
struct Open {
    item: Value,
    /// The kind and the text of the open part.
    part: Option<(String, String)>,
    /// The arguments or the input so far, and whether they are complete.
    text: String,
    is_done: bool,
}

/// Returns the events of a stream, after checking their form and numbers.
pub(crate) fn events(bytes: &[u8]) -> Vec<Value> {
    let mut decoder = Decoder::new();
    let mut events = Vec::new();
    for event in decoder.feed(bytes) {
        let event = event.expect("an event");
        let data: Value = serde_json::from_str(&event.data).expect("JSON");
        assert_eq!(event.name.as_deref(), data["type"].as_str(), "{data}");
        assert_eq!(data["sequence_number"], json!(events.len()), "{data}");
        let kind = data["type"].as_str().expect("a kind");
        let mut fields: Vec<&str> = match FIELDS.iter().find(|(name, _)| *name == kind) {
            Some((_, fields)) => fields.to_vec(),
            None if kind == "response.custom_tool_call_input.done" => {
                vec!["item_id", "output_index", "input"]
            }
            None => panic!("an unknown event: {data}"),
        };
        fields.extend(["type", "sequence_number"]);
        let found: HashSet<&str> = data.as_object().unwrap().keys().map(|key| &**key).collect();
        assert_eq!(found, fields.into_iter().collect(), "{data}");
        events.push(data);
    }
    assert!(
        decoder.finish().expect("no more").is_none(),
        "an event that is not ended"
    );
    events
}

/// Reads a whole stream and returns its last response.
///
/// # Panics
/// Panics if it breaks a rule of the API.
pub(crate) fn read_stream(bytes: &[u8]) -> Value {
    let events = events(bytes);
    let last = events.len().checked_sub(1).expect("a terminal event");
    let mut output: Vec<Value> = Vec::new();
    let mut open: Option<Open> = None;
    let mut ids = HashSet::new();
    for (place, event) in events.iter().enumerate() {
        let kind = event["type"].as_str().unwrap();
        match kind {
            "response.created" | "response.in_progress" => {
                assert_eq!(
                    place,
                    usize::from(kind == "response.in_progress"),
                    "{event}"
                );
                assert_eq!(event["response"]["status"], "in_progress");
                assert_eq!(event["response"]["output"], json!([]));
                check_response(&event["response"]);
                assert_eq!(event["response"], events[0]["response"]);
                continue;
            }
            "response.completed" | "response.incomplete" | "response.failed" => {
                assert_eq!(place, last, "the terminal event is the last one");
                assert!(open.is_none(), "all items are closed: {event}");
                let response = &event["response"];
                assert_eq!(
                    format!("response.{}", response["status"].as_str().unwrap()),
                    kind
                );
                check_response(response);
                assert_eq!(response["output"], json!(output));
                for field in ["id", "created_at", "model"] {
                    assert_eq!(response[field], events[0]["response"][field]);
                }
                continue;
            }
            _ => assert!(place > 1 && place < last, "{event}"),
        }
        assert_eq!(event["output_index"], json!(output.len()), "{event}");
        if kind == "response.output_item.added" {
            assert!(open.is_none(), "one item after another: {event}");
            let item = event["item"].clone();
            check_item(&item);
            assert_eq!(item["status"], "in_progress");
            let empty = item
                .get("content")
                .or(item.get("arguments"))
                .or(item.get("input"));
            assert!(matches!(empty, Some(empty) if *empty == json!([]) || *empty == json!("")));
            assert!(ids.insert(item["id"].clone()), "an id twice: {event}");
            open = Some(Open {
                item,
                part: None,
                text: String::new(),
                is_done: false,
            });
            continue;
        }
        let Some(now) = &mut open else {
            panic!("no item is open: {event}")
        };
        if kind == "response.output_item.done" {
            assert!(now.part.is_none(), "all parts are closed: {event}");
            let is_call = now.item.get("call_id").is_some();
            let is_complete = event["item"]["status"] == "completed";
            assert_eq!(now.is_done, is_call && is_complete, "{event}");
            if let (false, Some(arguments)) = (is_complete, now.item.get_mut("arguments")) {
                // It was truncated: nothing states that it is complete.
                *arguments = json!(now.text);
            }
            assert_ne!(event["item"]["status"], "in_progress");
            now.item["status"] = event["item"]["status"].clone();
            assert_eq!(event["item"], now.item);
            check_item(&event["item"]);
            output.extend(open.take().map(|open| open.item));
            continue;
        }
        assert_eq!(event["item_id"], now.item["id"], "{event}");
        take(kind, event, now);
    }
    assert!(events.len() > 2, "a response begins and ends");
    let terminal = events[last]["response"].clone();
    assert_ne!(terminal["status"], "in_progress");
    terminal
}

/// Handles an event inside an item.
fn take(kind: &str, event: &Value, open: &mut Open) {
    let text = |field: &str| event[field].as_str().expect("a text").to_owned();
    let parts = open
        .item
        .get("content")
        .map_or(0, |list| list.as_array().unwrap().len());
    if event.get("content_index").is_some() {
        assert_eq!(event["content_index"], json!(parts), "{event}");
    }
    match kind {
        "response.content_part.added" => {
            assert!(open.part.is_none(), "{event}");
            let part = &event["part"];
            check_part(part);
            let kind = part["type"].as_str().unwrap().to_owned();
            assert_eq!(part_text(part), "");
            open.part = Some((kind, String::new()));
        }
        "response.content_part.done" => {
            let (kind, all) = open.part.take().expect("an open part");
            check_part(&event["part"]);
            assert!(open.is_done, "{event}");
            open.is_done = false;
            assert_eq!(event["part"]["type"], kind.as_str());
            assert_eq!(part_text(&event["part"]), all);
            open.item["content"]
                .as_array_mut()
                .unwrap()
                .push(event["part"].clone());
        }
        "response.function_call_arguments.delta" | "response.custom_tool_call_input.delta" => {
            assert!(!open.is_done);
            open.text += &text("delta");
        }
        "response.function_call_arguments.done" => {
            assert_eq!(open.item["type"], "function_call");
            assert_eq!(event["name"], open.item["name"]);
            finish(open, "arguments", &text("arguments"));
        }
        "response.custom_tool_call_input.done" => {
            assert_eq!(open.item["type"], "custom_tool_call");
            finish(open, "input", &text("input"));
        }
        _ => {
            let (part, all) = open.part.as_mut().expect("an open part");
            let expected = format!("response.{part}.");
            let step = kind.strip_prefix(&expected).expect("an event of this part");
            assert!(!open.is_done, "{event}");
            if step == "delta" {
                let delta = text("delta");
                assert!(!delta.is_empty());
                all.push_str(&delta);
            } else {
                let field = if part == "refusal" { "refusal" } else { "text" };
                assert_eq!(text(field), *all);
                open.is_done = true;
            }
        }
    }
}

fn finish(open: &mut Open, field: &str, text: &str) {
    assert!(!open.is_done);
    assert_eq!(open.text, text);
    open.item[field] = text.into();
    open.is_done = true;
}

fn part_text(part: &Value) -> &str {
    let text = part.get("text").or(part.get("refusal"));
    text.and_then(Value::as_str).expect("a text")
}

fn check_part(part: &Value) {
    let fields: &[&str] = match part["type"].as_str().expect("a kind") {
        "output_text" => &["type", "text", "annotations", "logprobs"],
        "refusal" => &["type", "refusal"],
        "reasoning_text" => &["type", "text"],
        other => panic!("{other}?"),
    };
    has_fields(part, fields, &[]);
}

fn check_item(item: &Value) {
    let (prefix, fields, optional): (_, &[&str], &[&str]) =
        match item["type"].as_str().expect("a kind") {
            "message" => ("msg_", &["type", "id", "status", "role", "content"], &[]),
            "reasoning" => ("rs_", &["type", "id", "status", "summary", "content"], &[]),
            "function_call" => (
                "fc_",
                &["type", "id", "status", "call_id", "name", "arguments"],
                &["namespace"],
            ),
            "custom_tool_call" => (
                "ctc_",
                &["type", "id", "status", "call_id", "name", "input"],
                &["namespace"],
            ),
            other => panic!("{other}?"),
        };
    has_fields(item, fields, optional);
    assert!(item["id"].as_str().unwrap().starts_with(prefix), "{item}");
    if let Some(id) = item.get("call_id") {
        assert_ne!(id.as_str().unwrap(), "", "{item}");
    }
}

fn has_fields(object: &Value, fields: &[&str], optional: &[&str]) {
    let found = object.as_object().expect("an object").keys();
    let found: HashSet<&str> = found.map(|key| &**key).collect();
    for field in fields {
        assert!(found.contains(field), "{field} of {object}");
    }
    for field in found {
        assert!(
            fields.contains(&field) || optional.contains(&field),
            "{field} of {object}"
        );
    }
}

/// Checks a response, streamed or complete.
pub(crate) fn check_response(response: &Value) {
    assert_eq!(response["object"], "response");
    assert!(response["id"].as_str().unwrap().starts_with("resp_"));
    assert!(response["created_at"].is_u64() && response["model"].is_string());
    for field in [
        "error",
        "incomplete_details",
        "instructions",
        "parallel_tool_calls",
        "previous_response_id",
        "store",
        "text",
        "tool_choice",
        "tools",
    ] {
        assert!(response.get(field).is_some(), "{field} of {response}");
    }
    assert_eq!(response["error"].is_null(), response["status"] != "failed");
    assert_eq!(
        response["incomplete_details"].is_null(),
        response["status"] != "incomplete"
    );
    if let Some(usage) = response.get("usage") {
        let sum =
            usage["input_tokens"].as_u64().unwrap() + usage["output_tokens"].as_u64().unwrap();
        assert_eq!(usage["total_tokens"], json!(sum));
        assert!(usage["input_tokens_details"]["cached_tokens"].is_u64());
        assert!(usage["output_tokens_details"]["reasoning_tokens"].is_u64());
    }
    for item in response["output"].as_array().expect("a list") {
        check_item(item);
        let parts = item.get("content").and_then(Value::as_array);
        parts.into_iter().flatten().for_each(check_part);
    }
}

/// Returns a response in the form of an assembled chat completion, to compare the two.
pub(crate) fn recorded(response: &Value) -> Recorded {
    check_response(response);
    let mut recorded = Recorded::default();
    for item in response["output"].as_array().unwrap() {
        let text = |field: &str| item[field].as_str().unwrap_or_default().to_owned();
        let content = item.get("content").and_then(Value::as_array);
        for part in content.into_iter().flatten() {
            match part["type"].as_str().unwrap() {
                "output_text" => recorded.content += part_text(part),
                "reasoning_text" => recorded.reasoning += part_text(part),
                _ => {}
            }
        }
        if item["type"] == "function_call" {
            recorded.calls.push(RecordedCall {
                id: text("call_id"),
                name: text("name"),
                arguments: text("arguments"),
            });
        }
    }
    recorded.finish_reason = match response["status"].as_str().unwrap() {
        "incomplete" if response["incomplete_details"]["reason"] == "content_filter" => {
            Some("content_filter")
        }
        "incomplete" => Some("length"),
        "completed" if recorded.calls.is_empty() => Some("stop"),
        "completed" => Some("tool_calls"),
        _ => None,
    }
    .map(str::to_owned);
    recorded.usage = response.get("usage").cloned();
    recorded.error = response["error"]["message"].as_str().map(str::to_owned);
    recorded
}
