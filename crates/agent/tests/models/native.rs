//! Requests that use the server's own tool calls.

use std::sync::Arc;

use plaincall_agent::model::{
    Anthropic, Model, ModelErrorKind, ModelRequest, NativeCall, NativeMessage, NativeRequest,
    NativeTool, OpenAi, Piece, ReplyNext,
};
use plaincall_testkit::model_server::{Head, ModelServer, Script, chunk};
use serde_json::{Value, json};

fn call(id: &str, name: &str, arguments: &str) -> NativeCall {
    NativeCall::new(id, name, arguments)
}

fn request() -> ModelRequest {
    let tools = [NativeTool::new(
        "add",
        "Adds \"numbers\".",
        json!({"type": "object"}),
    )];
    let messages = vec![
        NativeMessage::System("Be brief.".to_owned()),
        NativeMessage::User("1 + 2?".to_owned()),
        NativeMessage::Assistant {
            text: String::new(),
            calls: vec![call("c1", "add", "{\"a\": 1}")],
        },
        NativeMessage::Result {
            id: "c1".to_owned(),
            text: "3".to_owned(),
        },
    ];
    let mut request = ModelRequest::new([]);
    request.seed = Some(7);
    request.native = Some(Arc::new(NativeRequest::new(tools, messages)));
    request
}

/// Returns the calls and the text of a reply, with the request that the server got.
async fn answered(script: Script) -> (Vec<NativeCall>, String, Value) {
    let server = ModelServer::start(vec![script]).await;
    let mut reply = OpenAi::new(server.url(), "m").reply(request());
    let (mut calls, mut text) = (Vec::new(), String::new());
    while let Some(next) = reply.next().await {
        match next.expect("a reply") {
            ReplyNext::Piece(Piece::Call(call)) => calls.push(call),
            ReplyNext::Piece(Piece::Text(more)) => text += &more,
            ReplyNext::Piece(_) => {}
            ReplyNext::Finish(finish) => assert_eq!(finish.reason.as_deref(), Some("tool_calls")),
        }
    }
    let body = server.seen().requests[0].json();
    (calls, text, body)
}

fn stream(deltas: &[Value]) -> Script {
    let mut pieces: Vec<Vec<u8>> = deltas
        .iter()
        .map(|delta| chunk(delta, &Value::Null))
        .collect();
    pieces.push(chunk(&json!({}), &json!("tool_calls")));
    pieces.push(b"data: [DONE]\n\n".to_vec());
    Script::new(
        Head::new(200).header("content-type", "text/event-stream"),
        pieces,
    )
}

#[tokio::test]
async fn calls_in_the_forms_of_servers() {
    let part = |value: Value| json!({ "tool_calls": [value] });
    let both = || vec![call("c1", "add", "{\"a\":1}"), call("c2", "sub", "{}")];
    let whole = json!({"choices": [{"finish_reason": "tool_calls", "message": {"role": "assistant", "content": "So.", "tool_calls": [
        {"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":1}"}},
        {"id": "c2", "type": "function", "function": {"name": "sub", "arguments": {}}},
    ]}}]});
    for (name, script) in [
        (
            "in pieces",
            stream(&[
                json!({"content": "So."}),
                part(json!({"index": 0, "id": "c1", "function": {"name": "add", "arguments": ""}})),
                part(json!({"index": 0, "function": {"arguments": "{\"a\""}})),
                part(json!({"index": 0, "function": {"arguments": ":1}"}})),
                part(
                    json!({"index": 1, "id": "c2", "function": {"name": "sub", "arguments": "{}"}}),
                ),
            ]),
        ),
        (
            "without an index",
            stream(&[
                json!({"content": "So."}),
                part(json!({"id": "c1", "function": {"name": "add", "arguments": "{\"a\":"}})),
                part(json!({"function": {"arguments": "1}"}})),
                part(json!({"id": "c2", "function": {"name": "sub", "arguments": "{}"}})),
            ]),
        ),
        (
            "all with the index 0",
            stream(&[
                json!({"content": "So."}),
                part(
                    json!({"index": 0, "id": "c1", "function": {"name": "add", "arguments": "{\"a\":1}"}}),
                ),
                part(
                    json!({"index": 0, "id": "c2", "function": {"name": "sub", "arguments": "{}"}}),
                ),
            ]),
        ),
        ("whole", Script::json(200, &whole)),
    ] {
        let (calls, text, _) = answered(script).await;
        assert_eq!((calls, text.as_str()), (both(), "So."), "{name}");
    }
}

#[tokio::test]
async fn calls_of_a_whole_answer_with_one_id() {
    let one = |number: u32| {
        let function = json!({"name": "add", "arguments": format!("{{\"a\":{number}}}")});
        json!({"index": 0, "id": "c1", "type": "function", "function": function})
    };
    let message = json!({"role": "assistant", "tool_calls": [one(1), one(2)]});
    let whole = json!({"choices": [{"finish_reason": "tool_calls", "message": message}]});
    let (calls, _, _) = answered(Script::json(200, &whole)).await;
    let expected = [
        call("c1", "add", "{\"a\":1}"),
        call("c1", "add", "{\"a\":2}"),
    ];
    assert_eq!(calls, expected);
}

#[tokio::test]
async fn the_request_has_the_tools() {
    let (_, _, body) = answered(stream(&[])).await;
    assert_eq!(
        body["tools"],
        json!([{"type": "function", "function": {"name": "add", "description": "Adds \"numbers\".", "parameters": {"type": "object"}}}])
    );
    assert_eq!(body["seed"], 7);
    assert_eq!(
        body["messages"],
        json!([
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "1 + 2?"},
            {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 1}"}}]},
            {"role": "tool", "content": "3", "tool_call_id": "c1"},
        ])
    );
}

#[tokio::test]
async fn only_openai_supports_native_calls() {
    assert!(OpenAi::new("http://127.0.0.1:1/v1", "m").supports_native_calls());
    assert!(!Anthropic::new("m").supports_native_calls());
    // A call in reply to an ordinary request is an error, as before.
    let script = stream(&[
        json!({"tool_calls": [{"index": 0, "id": "c", "function": {"name": "a", "arguments": "{}"}}]}),
    ]);
    let server = ModelServer::start(vec![script]).await;
    let mut reply = OpenAi::new(server.url(), "m").reply(ModelRequest::new([]));
    let error = reply.next().await.expect("an end").expect_err("an error");
    assert_eq!(error.kind, ModelErrorKind::Refused);
}
