//! Errors of invalid requests, and robustness against invalid input.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use crate::payloads;

use std::sync::LazyLock;

use payloads::folder;
use plaincall_wire::anthropic::{MessagesRequest, StreamEvent};
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, ModelList, read_error,
};
use plaincall_wire::{read, write};
use proptest::prelude::*;

#[track_caller]
fn check(body: &str, expected: &str) {
    let error = read::<ChatCompletionRequest>(body.as_bytes()).expect_err("wrong");
    assert_eq!(error.to_string(), expected);
}

#[test]
fn a_request_that_is_wrong() {
    check("", "the text ends inside a value (line 1, column 0)");
    check("[]", "expected an object, found a list (line 1, column 0)");
    check("{}", "messages: the field is missing (line 1, column 2)");
    check(
        r#"{"messages":null}"#,
        "messages: expected a list, found null (line 1, column 16)",
    );
    check(
        r#"{"messages":"hi"}"#,
        "messages: expected a list, found string \"hi\" (line 1, column 16)",
    );
    check(
        "{\"messages\":[{},\n{\"role\":7}]}",
        "messages[1].role: expected a string, found integer `7` (line 2, column 9)",
    );
    check(
        r#"{"messages":[{"content":[{"type":"text"},{"text":true}]}]}"#,
        "messages[0].content[1].text: expected a string, found boolean `true` (line 1, column 53)",
    );
    check(
        r#"{"messages":[{"tool_calls":[{"function":[]}]}]}"#,
        "messages[0].tool_calls[0].function: expected an object, found a list (line 1, column 40)",
    );
    check(
        r#"{"messages":[{"tool_call_id":{"x":1}}]}"#,
        "messages[0].tool_call_id: expected a string, found an object (line 1, column 37)",
    );
    check(
        r#"{"messages":[{"tool_calls":[{"id":true}]}]}"#,
        "messages[0].tool_calls[0].id: expected a string, found boolean `true` (line 1, column 39)",
    );
    check(
        r#"{"messages":[{"tool_calls":[{"index":[1]}]}]}"#,
        "messages[0].tool_calls[0].index: expected a number, found a list (line 1, column 41)",
    );
    check(
        r#"{"messages":[],"stream":"yes"}"#,
        "stream: expected a boolean, found string \"yes\" (line 1, column 29)",
    );
    check(
        r#"{"messages":[],"tool_choice":{"function":{"name":1}}}"#,
        "tool_choice.function.name: expected a string, found integer `1` (line 1, column 50)",
    );
    check(
        r#"{"messages":[],"n":{}}"#,
        "n: expected a number, found an object (line 1, column 19)",
    );
    check(
        r#"{"messages":[],"x":01}"#,
        "invalid number (line 1, column 21)",
    );
    check(
        r#"{"messages":[]} x"#,
        "trailing characters (line 1, column 17)",
    );
}

#[test]
fn tools_that_are_wrong() {
    let body = br#"{"messages":[],"tools":[{},{"function":{"name":[]}}]}"#;
    let request: ChatCompletionRequest = read(body).expect("a request");
    assert_eq!(request.tools().expect("a list").len(), 2);
    let request: ChatCompletionRequest = read(br#"{"messages":[],"tools":{}}"#).expect("a request");
    assert_eq!(request.tools().expect_err("wrong").path, "tools");
}

#[test]
fn a_message_does_not_quote_a_whole_text() {
    let body = format!(r#"{{"messages":"{}"}}"#, "é".repeat(100_000));
    let error = read::<ChatCompletionRequest>(body.as_bytes()).expect_err("wrong");
    assert!(error.message.len() < 300, "{}", error.message.len());
    assert!(
        error
            .message
            .starts_with("expected a list, found string \"éé"),
        "{error}"
    );
    assert!(error.message.ends_with("éé\""), "{error}");
}

/// Reads the bytes as every type. A value that can be read can be written, and reads back as the same value.
fn read_all(bytes: &[u8]) {
    macro_rules! read_each {
        ($($kind:ident),*) => { $(
            if let Ok(value) = read::<$kind>(bytes) {
                let text = write(&value);
                let again: $kind = read(text.as_bytes()).unwrap_or_else(|error| panic!("{text}: {error}"));
                assert_eq!(write(&again), text);
                assert_eq!(again, value);
            }
        )* };
    }
    read_each!(
        ChatCompletionRequest,
        ChatCompletion,
        ChatCompletionChunk,
        ModelList,
        MessagesRequest,
        StreamEvent
    );
    if let Ok(request) = read::<ChatCompletionRequest>(bytes) {
        let _ = request.tools();
    }
    read_error(bytes);
}

#[test]
fn depth_and_size_do_no_harm() {
    let deep = |open: &str, inner: &str, close: &str| {
        format!("{}{inner}{}", open.repeat(5_000), close.repeat(5_000))
    };
    for value in [
        deep("[", "", "]"),
        deep("{\"a\":", "1", "}"),
        deep("[", "", ""),
        deep("{\"a\":", "", ""),
        deep("[{\"thinking\":", "[]", "}]"),
        deep("{\"error\":", "\"\"", "}"),
    ] {
        for body in [
            value.clone(),
            format!(r#"{{"messages":[],"x":{value}}}"#),
            format!(r#"{{"messages":[],"tools":{value}}}"#),
            format!(r#"{{"messages":[{{"content":{value}}}]}}"#),
            format!(
                r#"{{"messages":[{{"tool_calls":[{{"function":{{"arguments":{value}}}}}]}}]}}"#
            ),
            format!(r#"{{"choices":[{{"delta":{value}}}],"error":{value}}}"#),
        ] {
            read_all(body.as_bytes());
        }
    }
    // Forwarded fields may have any depth.
    let body = format!(r#"{{"messages":[],"x":{}}}"#, deep("[", "", "]"));
    let request: ChatCompletionRequest = read(body.as_bytes()).expect("a request");
    assert_eq!(write(&request), body);
}

static PAYLOADS: LazyLock<Vec<(String, String)>> = LazyLock::new(|| {
    let folders = ["request", "response", "messages-request", "error", "models"];
    folders.into_iter().flat_map(folder).collect()
});

/// A value of JSON.
fn json() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("1.50".to_owned()),
        Just("-7".to_owned()),
        Just("1e400".to_owned()),
        Just("\"\\ud83d\\n\"".to_owned()),
        any::<String>().prop_map(|text| serde_json::Value::from(text).to_string()),
    ];
    let name = proptest::sample::select(vec![
        "role",
        "content",
        "type",
        "text",
        "thinking",
        "name",
        "function",
        "arguments",
        "id",
        "index",
        "tool_calls",
        "messages",
        "model",
        "choices",
        "delta",
        "message",
        "usage",
        "finish_reason",
        "tool_choice",
        "tools",
        "error",
        "data",
        "stream",
        "completion_tokens",
        "x",
        "y",
    ]);
    leaf.prop_recursive(5, 60, 6, move |inner| {
        prop_oneof![
            proptest::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec((name.clone(), inner), 0..6).prop_map(|fields| {
                let fields: Vec<_> = fields
                    .iter()
                    .map(|(name, value)| format!("\"{name}\":{value}"))
                    .collect();
                format!("{{{}}}", fields.join(","))
            }),
        ]
    })
}

proptest! {
    #[test]
    fn any_json_does_no_harm(json in json()) {
        read_all(json.as_bytes());
        read_all(format!("{{\"messages\":[{json}],\"tool_choice\":{json}}}").as_bytes());
        read_all(format!("{{\"choices\":[{{\"delta\":{json}}}],\"usage\":{json}}}").as_bytes());
    }

    #[test]
    fn payloads_with_changed_bytes_do_no_harm(
        pick in any::<proptest::sample::Index>(),
        changes in proptest::collection::vec((any::<proptest::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = pick.get(&PAYLOADS).1.clone().into_bytes();
        for (place, byte) in changes {
            *place.get_mut(&mut bytes) = byte;
        }
        read_all(&bytes);
    }
}
