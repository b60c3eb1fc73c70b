//! The APIs of clients: requests, and strict readers of what comes back.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

use plaincall_gateway::Secret;
use plaincall_gateway::translation::{Adapter, Ask, Asked, ClientApi, Host};
use plaincall_testkit::strict_client::{Recorded, RecordedCall, read_answer};
use serde_json::{Value, json};

use crate::messages::strict;
use crate::ollama;
use crate::responses::strict_reader;

pub(crate) const ALL: [ClientApi; 4] = [
    ClientApi::Chat,
    ClientApi::Responses,
    ClientApi::Messages,
    ClientApi::Ollama,
];

/// A request with the tools of the tests, and fields of chat completions.
pub(crate) fn request(api: ClientApi, fields: &Value) -> Value {
    let mut request = match api {
        ClientApi::Chat | ClientApi::Ollama => return crate::replies::model::request(fields),
        ClientApi::Responses => crate::responses::model::request(&json!({})),
        _ => crate::messages::model::request(&json!({"thinking": {"type": "enabled"}})),
    };
    let is_responses = api == ClientApi::Responses;
    for (name, value) in fields.as_object().unwrap() {
        match &**name {
            "stream_options" => {}
            "tool_choice" if !is_responses && value == "required" => {
                request[name] = json!({"type": "any"});
            }
            "tool_choice" if !is_responses => request[name] = json!({"type": value}),
            "parallel_tool_calls" if !is_responses => {
                request["tool_choice"] =
                    json!({"type": "auto", "disable_parallel_tool_use": value == false});
            }
            _ => request[name] = value.clone(),
        }
    }
    request
}

pub(crate) fn asked(adapter: &Adapter, api: ClientApi, body: &Value) -> Box<Asked> {
    let host = Host::new(Secret::new("seed"), 1);
    match adapter.ask(api.path(), body.to_string().as_bytes(), host) {
        Ask::Asked(asked) => asked,
        other => panic!("{other:?}"),
    }
}

/// Reads a whole stream, and checks every rule of the API.
pub(crate) fn read_stream(api: ClientApi, bytes: &[u8], includes_usage: bool) -> Recorded {
    match api {
        ClientApi::Chat => read_answer(bytes, includes_usage),
        ClientApi::Responses => strict_reader::recorded(&strict_reader::read_stream(bytes)),
        ClientApi::Ollama => ollama::strict::read_stream(bytes),
        _ => strict::read_stream(bytes).recorded(),
    }
}

/// Reads a complete response without its ids, and checks every rule of the API.
pub(crate) fn read_complete(api: ClientApi, bytes: &[u8]) -> Value {
    let mut response: Value = serde_json::from_slice(bytes).expect("JSON");
    match api {
        ClientApi::Chat => assert_eq!(response["object"], "chat.completion"),
        ClientApi::Responses => strict_reader::check_response(&response),
        ClientApi::Ollama => drop(ollama::strict::read_complete(bytes)),
        _ => assert_eq!(strict::read_complete(bytes).error, None),
    }
    without_ids(&mut response);
    response
}

/// Returns the names and arguments of the calls in a response.
pub(crate) fn calls(api: ClientApi, bytes: &[u8], is_streamed: bool) -> Vec<(String, Value)> {
    let recorded = if is_streamed {
        read_stream(api, bytes, false)
    } else {
        read_whole(api, bytes)
    };
    let calls = recorded.calls.into_iter();
    calls
        .map(|call| (call.name, serde_json::from_str(&call.arguments).unwrap()))
        .collect()
}

/// Reads a complete response in the form of an assembled chat completion, and checks every rule of the API.
pub(crate) fn read_whole(api: ClientApi, bytes: &[u8]) -> Recorded {
    read_complete(api, bytes);
    let response: Value = serde_json::from_slice(bytes).unwrap();
    match api {
        ClientApi::Chat => chat_recorded(&response["choices"][0]),
        ClientApi::Responses => strict_reader::recorded(&response),
        ClientApi::Ollama => ollama::strict::read_complete(bytes),
        _ => strict::read_complete(bytes).recorded(),
    }
}

fn chat_recorded(choice: &Value) -> Recorded {
    let message = &choice["message"];
    let text = |field: &str| message[field].as_str().unwrap_or_default().to_owned();
    let calls = message["tool_calls"].as_array().into_iter().flatten();
    let calls = calls.map(|call| {
        let text = |field: &str| call["function"][field].as_str().unwrap().to_owned();
        RecordedCall {
            id: call["id"].as_str().unwrap().to_owned(),
            name: text("name"),
            arguments: text("arguments"),
        }
    });
    Recorded {
        content: text("content"),
        reasoning: text("reasoning_content") + &text("reasoning"),
        calls: calls.collect(),
        finish_reason: choice["finish_reason"].as_str().map(str::to_owned),
        ..Recorded::default()
    }
}

/// The fields that only a server can fill.
const DURATIONS: [&str; 4] = [
    "total_duration",
    "load_duration",
    "prompt_eval_duration",
    "eval_duration",
];

fn without_ids(value: &mut Value) {
    match value {
        Value::Object(members) => {
            members.retain(|name, _| !DURATIONS.contains(&&**name));
            for (name, value) in members {
                if ["id", "call_id", "created", "created_at"].contains(&&**name) {
                    *value = Value::Null;
                } else {
                    without_ids(value);
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(without_ids),
        _ => {}
    }
}

/// Checks the body of an error response.
pub(crate) fn check_error(api: ClientApi, body: &[u8]) {
    match api {
        ClientApi::Messages => return assert!(strict::read_complete(body).error.is_some()),
        ClientApi::Ollama => return ollama::strict::check_error(body),
        _ => {}
    }
    let body: Value = serde_json::from_slice(body).expect("JSON");
    assert!(body["error"]["message"].is_string(), "{body}");
    for field in ["type", "param", "code"] {
        assert!(body["error"].get(field).is_some(), "{body}");
    }
}
