//! Our tools for MCP clients.

use std::io::Cursor;

use plaincall::tool::definitions::read_tool_definitions;
use plaincall::{Effect, Tool, Toolbox};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

use plaincall_agent::mcp::McpToolServer;
use tokio::io::AsyncReadExt as _;
use tokio_util::sync::CancellationToken;

/// The answers to lines that are not messages.
#[tokio::test]
async fn lines_that_are_not_messages() {
    let error = "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"this is not a protocol message: ";
    for (lines, count) in [
        (&b"{\n"[..], 1),
        (b"nonsense\n\n", 1),
        (b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\"", 1),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":\n[\n",
            2,
        ),
        (b"\n \r\n", 0),
    ] {
        let (ours, mut theirs) = tokio::io::duplex(1 << 16);
        let offer = McpToolServer::new(plaincall::Toolbox::default());
        let served = offer.serve(Cursor::new(lines.to_vec()), ours, CancellationToken::new());
        served.await.expect("the client went away");
        let mut answers = String::new();
        theirs.read_to_string(&mut answers).await.expect("text");
        assert_eq!(answers.lines().count(), count, "{answers}");
        for answer in answers.lines() {
            assert!(answer.starts_with(error), "{answer}");
        }
    }
}

/// All JSON that fits the published schema is accepted, and arrives as it was sent.
#[tokio::test]
async fn arguments_of_clients() {
    let definition = json!({"name": "t", "inputSchema": {"type": "object", "properties": {
        "i": {"type": "integer"}, "id": {"anyOf": [{"type": "integer"}, {"type": "string"}]}, "x": {},
        "m": {"type": "object"}, "l": {"type": "array", "items": {"type": "integer"}}, "n": {"type": "number"},
    }}});
    let spec = read_tool_definitions(&definition.to_string()).expect("a definition");
    let mut spec = spec.into_iter().next().expect("a tool");
    spec.effect = Effect::Read;
    let tool = Tool::raw(spec, |arguments, _| async move {
        Ok(arguments.to_value().to_string())
    });
    let server = McpToolServer::new(Toolbox::new([tool]).expect("one tool"));
    let (ours, theirs) = tokio::io::duplex(1 << 16);
    let (input, output) = tokio::io::split(theirs);
    let serving = tokio::spawn(server.serve(input, output, CancellationToken::new()));
    let (input, mut output) = tokio::io::split(ours);
    let mut lines = BufReader::new(input).lines();
    let begin = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}
{"jsonrpc":"2.0","method":"notifications/initialized"}
"#;
    output.write_all(begin.as_bytes()).await.expect("it reads");
    lines.next_line().await.expect("it answers");
    for (arguments, expected) in [
        (r#"{"i":7.0}"#, r#"{"i":7}"#),
        (r#"{"i":1e2}"#, r#"{"i":100}"#),
        (r#"{"l":[1,2.0]}"#, r#"{"l":[1,2]}"#),
        (r#"{"n":5}"#, r#"{"n":5}"#),
        (r#"{"id":"7"}"#, r#"{"id":"7"}"#),
        (r#"{"id":7}"#, r#"{"id":7}"#),
        (r#"{"x":null}"#, r#"{"x":null}"#),
        (r#"{"x":{}}"#, r#"{"x":{}}"#),
        (r#"{"x":[]}"#, r#"{"x":[]}"#),
        (r#"{"x":"7"}"#, r#"{"x":"7"}"#),
        (r#"{"x":" 5"}"#, r#"{"x":" 5"}"#),
        (
            r#"{"x":{"0":1,"a b":{"":2}}}"#,
            r#"{"x":{"0":1,"a b":{"":2}}}"#,
        ),
        (
            r#"{"x":{"0":1,"a":[[],"true"]}}"#,
            r#"{"x":{"0":1,"a":[[],"true"]}}"#,
        ),
        // A long integer is text, with every digit.
        (
            r#"{"m":{"big":123456789012345678901234567890}}"#,
            r#"{"m":{"big":"123456789012345678901234567890"}}"#,
        ),
        (
            r#"{"i":7.5}"#,
            "invalid arguments: `i`: expected an integer, found `7.5`",
        ),
        (
            r#"{"i":"7"}"#,
            "invalid arguments: `i`: expected an integer, found `\"7\"`",
        ),
        (
            r#"{"m":["a"]}"#,
            "invalid arguments: `m`: expected an object, found `[\"a\"]`",
        ),
    ] {
        let call = format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"tools/call\",\"params\":{{\"name\":\"t\",\"arguments\":{arguments}}}}}\n"
        );
        output.write_all(call.as_bytes()).await.expect("it reads");
        let answer = lines
            .next_line()
            .await
            .expect("it answers")
            .expect("a line");
        let answer: Value = serde_json::from_str(&answer).expect("JSON");
        assert_eq!(
            answer["result"]["content"][0]["text"], expected,
            "{arguments}"
        );
    }
    drop((lines, output));
    serving.await.expect("no panic").expect("the client left");
}
