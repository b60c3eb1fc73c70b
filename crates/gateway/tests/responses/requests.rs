//! Requests, converted to chat completions requests.

use serde_json::{Value, json};

use crate::responses::model::{messages, refused, request, sent};

fn texts(input: &Value) -> Vec<(String, String)> {
    messages(&json!({"input": input}))
}

fn pair(role: &str, text: &str) -> (String, String) {
    (role.to_owned(), text.to_owned())
}

#[test]
fn texts_and_messages() {
    assert_eq!(texts(&json!("Hi.")), [pair("user", "Hi.")]);
    let body = json!({
        "instructions": "Be short.",
        "input": [
            {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "Be kind."}]},
            {"role": "user", "content": "Hi."},
            {"type": "reasoning", "id": "rs_1", "summary": [], "content": [{"type": "reasoning_text", "text": "Hm."}]},
            {"type": "message", "id": "msg_1", "role": "assistant", "content": [{"type": "output_text", "text": "Yes?", "annotations": []}]},
            {"role": "developer", "content": "Now in French."},
            {"role": "user", "content": "Bye."},
        ],
    });
    assert_eq!(
        messages(&body),
        [
            pair("system", "Be short.\n\nBe kind."),
            pair("user", "Hi."),
            pair("assistant", "Yes?"),
            pair(
                "user",
                "The system writes:\n\nNow in French.\n\nThe user writes:\n\nBye."
            ),
        ]
    );
    assert_eq!(sent(&body)["messages"][2]["reasoning_content"], "Hm.");
}

#[test]
fn calls_and_their_outputs() {
    let call = |id: &str, name: &str, arguments: &str| json!({"type": "function_call", "id": "fc_1", "call_id": id, "name": name, "arguments": arguments});
    let output = |id: &str, text: &str| json!({"type": "function_call_output", "call_id": id, "output": text});
    let body = request(&json!({"input": [
        {"role": "user", "content": "Do it."},
        {"role": "assistant", "content": "I do."},
        call("call_1", "add", r#"{"a":5}"#),
        call("call_2", "now", "{}"),
        output("call_2", "noon"),
        output("call_1", "10"),
    ]}));
    let messages = messages(&body);
    assert_eq!(messages.len(), 4);
    assert_eq!(
        messages[2],
        pair(
            "assistant",
            "I do.\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n!!!GADGET_START:now\n!!!GADGET_END\n"
        )
    );
    assert_eq!(messages[3].0, "user");
    let first = messages[3].1.find("10").unwrap();
    assert!(first < messages[3].1.find("noon").unwrap());
}

#[test]
fn images_and_files() {
    let body = json!({"input": [{"role": "user", "content": [
        {"type": "input_text", "text": "What is it?"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA", "detail": "low"},
        {"type": "input_file", "filename": "a.pdf", "file_data": "data:application/pdf;base64,AAAA"},
        {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
    ]}]});
    assert_eq!(
        sent(&body)["messages"][0]["content"],
        json!([
            {"type": "text", "text": "What is it?"},
            {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA", "detail": "low"}},
            {"type": "file", "file": {"file_data": "data:application/pdf;base64,AAAA", "filename": "a.pdf"}},
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
        ])
    );
}

#[test]
fn options() {
    let body = json!({
        "model": "m", "input": "Hi.", "stream": true, "store": true, "max_output_tokens": 9, "temperature": 0.5,
        "reasoning": {"effort": "low", "summary": "auto"}, "metadata": {"a": "b"}, "include": ["reasoning.encrypted_content"],
        "text": {"verbosity": "low", "format": {"type": "json_schema", "name": "n", "schema": {"type": "object"}, "strict": true}},
        "new_option": [1],
    });
    assert_eq!(
        sent(&body),
        json!({
            "model": "m", "messages": [{"role": "user", "content": "Hi."}], "stream": true,
            "stream_options": {"include_usage": true}, "max_tokens": 9, "temperature": 0.5,
            "reasoning_effort": "low", "verbosity": "low", "new_option": [1],
            "response_format": {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "object"}, "strict": true}},
        })
    );
}

#[test]
fn rejected_requests() {
    let table = [
        (
            json!({"previous_response_id": "resp_1"}),
            "previous_response_id",
            "send the whole conversation in `input`",
        ),
        (
            json!({"conversation": "conv_1"}),
            "conversation",
            "send the whole conversation",
        ),
        (
            json!({"prompt": {"id": "pmpt_1"}}),
            "prompt",
            "`instructions`",
        ),
        (
            json!({"background": true}),
            "background",
            "stores no responses",
        ),
        (
            json!({"input": [{"type": "item_reference", "id": "msg_1"}]}),
            "input[0].type",
            "send the item itself",
        ),
        (
            json!({"input": [{"role": "tool", "content": "x"}]}),
            "input[0].role",
            "`role` must be",
        ),
        (
            json!({"input": [{"role": "user", "content": [{"type": "input_image", "file_id": "f"}]}]}),
            "input[0].content[0]",
            "send the image itself",
        ),
        (json!({"input": 5}), "input", "a string or a list of items"),
        (json!({"tools": {"type": "function"}}), "tools", ""),
        (
            json!({"tool_choice": {"type": "web_search"}}),
            "tool_choice",
            "`web_search` is not supported",
        ),
        (
            json!({"tool_choice": {"type": "function", "name": "none"}}),
            "tool_choice",
            "unknown tool `none`",
        ),
        (
            json!({"tool_choice": 5}),
            "tool_choice",
            "invalid `tool_choice`",
        ),
    ];
    for (fields, param, message) in table {
        let error = refused(&request(&fields));
        assert_eq!(error.status, 400);
        let found = error.body.param.as_ref().map(plaincall_wire::Json::text);
        assert_eq!(found, Some(&*format!("{param:?}")), "{}", error.message());
        assert!(error.message().contains(message), "{}", error.message());
    }
}
