//! A value is written as it was read: every field, in its order.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use crate::payloads;

use payloads::{data_of, folder};
use plaincall_wire::anthropic::{MessageResponse, MessagesRequest, StreamEvent};
use plaincall_wire::ollama::{ChatRequest, ChatResponse};
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ErrorBody, ModelList,
};
use plaincall_wire::{read, write};
use serde_json::Value;

/// Returns the same JSON with the same order of keys, without blanks and unnecessary escapes.
fn normal(json: &str) -> String {
    let value: Value = serde_json::from_str(json).expect("JSON");
    value.to_string()
}

macro_rules! check {
    ($name:expr, $json:expr, $kind:ident) => {{
        let (name, json) = ($name, $json);
        let value: $kind = read(json.as_bytes()).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(normal(&write(&value)), normal(json), "{name}");
        let owned = value.clone().into_owned();
        assert_eq!(owned, value, "{name}");
        assert_eq!(write(&owned), write(&value), "{name}");
        // Truncated input is rejected with an error.
        let whole = json.trim_end().len();
        for end in 0..whole {
            let error = read::<$kind>(&json.as_bytes()[..end]).expect_err("truncated");
            assert!(!error.message.is_empty(), "{name}, {end} bytes");
        }
    }};
}

#[test]
fn requests() {
    for (name, json) in folder("request") {
        check!(&name, &json, ChatCompletionRequest);
    }
    for (name, json) in folder("messages-request") {
        check!(&name, &json, MessagesRequest);
    }
    for (name, json) in folder("ollama-request") {
        check!(&name, &json, ChatRequest);
    }
}

#[test]
fn responses() {
    for (name, json) in folder("models") {
        check!(&name, &json, ModelList);
    }
    for (name, json) in folder("messages-response") {
        check!(&name, &json, MessageResponse);
    }
    for (name, json) in folder("ollama-response") {
        check!(&name, &json, ChatResponse);
    }
    for (name, json) in folder("response") {
        // Its figures are not those of the API; they are written as numbers.
        if name == "null-choices.json" {
            continue;
        }
        check!(&name, &json, ChatCompletion);
    }
    for (name, json) in folder("error") {
        if ["openai.json", "ollama.json", "llamacpp.json"].contains(&name.as_str()) {
            check!(&name, &json, ErrorBody);
        }
    }
}

#[test]
fn events_of_streams() {
    for (name, stream) in folder("stream") {
        for data in data_of(&stream).iter().filter(|data| *data != "[DONE]") {
            check!(&name, data, ChatCompletionChunk);
        }
    }
    for (name, stream) in folder("messages-stream") {
        for data in data_of(&stream) {
            check!(&name, &data, StreamEvent);
        }
    }
}

#[test]
fn figures_that_are_not_counts_are_accepted() {
    let name_and_json = folder("response")
        .into_iter()
        .find(|(name, _)| name == "null-choices.json");
    let (_, json) = name_and_json.expect("the file");
    let response: ChatCompletion = read(json.as_bytes()).expect("a response");
    assert!(response.choices().is_empty());
    let usage = response.usage.as_ref().expect("usage");
    assert_eq!(
        (usage.prompt_tokens, usage.completion_tokens),
        (Some(0), Some(3))
    );
    assert_eq!(
        write(&response),
        r#"{"id":"x","object":"chat.completion","created":1.7e9,"model":"m","choices":null,"usage":{"prompt_tokens":0,"completion_tokens":3,"total_tokens":null}}"#
    );
}

/// Reads a text as a request and writes it.
#[track_caller]
fn check_request(json: &str, expected: &str) {
    let request: ChatCompletionRequest = read(json.as_bytes()).expect("a request");
    assert_eq!(write(&request), expected);
}

#[test]
fn odd_objects() {
    // Digits, blanks within unknown values, duplicate keys.
    check_request(
        r#" {"a" : [1.0,  2e1, 123456789012345678901234567890], "messages":[], "b":{"x":1,"x":2}, "a":0}"#,
        r#"{"a":[1.0,  2e1, 123456789012345678901234567890],"messages":[],"b":{"x":1,"x":2},"a":0}"#,
    );
    // A duplicate known field has its last value, in its first position.
    check_request(
        r#"{"model":"a","messages":[],"x":1,"model":"b"}"#,
        r#"{"model":"b","messages":[],"x":1}"#,
    );
    check_request(
        r#"{"model":null,"messages":[],"model":"b"}"#,
        r#"{"model":"b","messages":[]}"#,
    );
    // Names with escapes.
    check_request(
        r#"{"m\u006fdel":"a","messages":[],"\u0078\n":1}"#,
        "{\"model\":\"a\",\"messages\":[],\"x\\n\":1}",
    );
    // Halves of surrogate pairs, in a known field and in others.
    check_request(
        r#"{"messages":[{"content":"a\ud83d","y":"\ud83d"}]}"#,
        "{\"messages\":[{\"content\":\"a\u{FFFD}\",\"y\":\"\\ud83d\"}]}",
    );
}

#[test]
fn a_field_that_is_set_or_taken_away() {
    let mut request: ChatCompletionRequest =
        read(br#"{"stream":true,"x":1,"messages":[],"tools":[{}],"tool_choice":null}"#)
            .expect("a request");
    request.tools = None;
    request.tool_choice = None;
    request.n = Some(1);
    assert_eq!(
        write(&request),
        r#"{"stream":true,"x":1,"messages":[],"tool_choice":null,"n":1}"#
    );
    request.unknown.remove("x");
    request.stream = None;
    assert_eq!(
        write(&request),
        r#"{"messages":[],"tool_choice":null,"n":1}"#
    );
}

#[test]
fn bytes_that_are_not_utf_8() {
    let request: ChatCompletionRequest =
        read(b"{\"messages\":[{\"content\":\"a\xFFb\"}]}").expect("a request");
    let content = request.messages[0].content.as_ref().expect("content");
    assert_eq!(content.text(), "a\u{FFFD}b");
    read::<ChatCompletionRequest>(b"{\"messages\":[],\"x\":\"\xFF\"}").expect_err("not passed on");
}
