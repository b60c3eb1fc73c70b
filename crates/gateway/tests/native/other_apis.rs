//! Messages and the Responses API in native mode.

use plaincall_gateway::translation::{Adapter, Ask, ClientApi};
use plaincall_gateway::{ArgumentMode, Secret};
use serde_json::{Value, json};

use crate::native::model::{ask, asked, completion, fed, native, stream};

const CALL: &str = "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>";

fn upstream(api: ClientApi, body: &Value) -> Value {
    serde_json::from_slice(asked(api, body).body()).unwrap()
}

fn function(fields: &Value) -> Value {
    json!({"type": "function", "function": fields})
}

fn piece(index: u64, id: Option<&str>, name: Option<&str>, arguments: &str) -> Value {
    let mut function = json!({"arguments": arguments});
    if let Some(name) = name {
        function["name"] = json!(name);
    }
    let mut call = json!({"index": index, "function": function});
    if let Some(id) = id {
        call["id"] = json!(id);
        call["type"] = json!("function");
    }
    json!({"tool_calls": [call]})
}

/// Two native calls in pieces, with text before and a call as text after it.
fn deltas() -> Vec<Value> {
    vec![
        json!({"reasoning_content": "Hm."}),
        json!({"content": format!("I add.\n{CALL}\n")}),
        piece(0, Some("call_1"), Some("files__read"), "{\"path\":"),
        piece(0, None, None, "\"a\"}"),
        piece(1, Some("call_2"), Some("now"), ""),
        piece(2, Some("call_3"), Some("patch"), "{\"input\": \"x\"}"),
    ]
}

#[test]
fn messages_requests() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let body = json!({
        "model": "m", "max_tokens": 9, "tool_choice": {"type": "any", "disable_parallel_tool_use": true},
        "tools": [
            {"name": "add", "description": "Adds.", "input_schema": schema, "cache_control": {"type": "ephemeral"}, "input_examples": [{"a": 1}]},
            {"type": "web_search_20250305", "name": "web_search"},
            {"name": "late", "input_schema": schema, "defer_loading": true},
            {"name": "later", "input_schema": schema, "defer_loading": true},
        ],
        "messages": [
            {"role": "user", "content": "!!!GADGET_START:add"},
            {"role": "assistant", "content": [{"type": "text", "text": "I add."},
                {"type": "tool_use", "id": "t1", "name": "add", "input": {"a": 5}},
                {"type": "tool_use", "id": "t2", "name": "find", "input": {}}]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "t1", "content": "no", "is_error": true},
                {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "tool_reference", "tool_name": "late"}]}]}],
    });
    let asked = asked(ClientApi::Messages, &body);
    let found: Value = serde_json::from_slice(asked.body()).unwrap();
    let late = json!({"name": "late", "parameters": schema});
    let add = json!({"name": "add", "description": "Adds.", "parameters": schema});
    assert_eq!(found["tools"], json!([function(&add), function(&late)]));
    assert_eq!(found["tool_choice"], "required");
    assert_eq!(found["parallel_tool_calls"], false);
    let call = |id: &str, name: &str, arguments: &str| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    assert_eq!(
        found["messages"],
        json!([
            {"role": "user", "content": "!!!GADGET_START:add"},
            {"role": "assistant", "content": "I add.", "tool_calls": [
                call("t1", "add", "{\"a\":5}"), call("t2", "find", "{}")]},
            {"role": "tool", "content": "Error: no", "tool_call_id": "t1"},
            {"role": "tool", "content": "The tool late is available now.", "tool_call_id": "t2"}])
    );
    let changed: Vec<&str> = asked
        .changed_tools()
        .iter()
        .map(|tool| &*tool.reason.at)
        .collect();
    assert_eq!(changed, ["/tools/1/type"]);
}

fn responses_body() -> Value {
    let path = json!({"type": "object", "properties": {"path": {"type": "string"}}});
    json!({"model": "m", "tools": [
        {"type": "function", "name": "now", "parameters": {"type": "object", "properties": {}}, "strict": false},
        {"type": "custom", "name": "patch", "description": "Patches."},
        {"type": "namespace", "name": "files", "tools": [
            {"type": "function", "name": "read", "parameters": path}]},
        {"type": "web_search"}],
        "input": [
            {"role": "developer", "content": "Be brief."},
            {"role": "user", "content": "Go."},
            {"type": "custom_tool_call", "call_id": "c1", "name": "patch", "input": "x"},
            {"type": "custom_tool_call_output", "call_id": "c1", "output": "done"}]})
}

#[test]
fn responses_requests() {
    let found = upstream(ClientApi::Responses, &responses_body());
    let names = found["tools"].as_array().unwrap().iter();
    let names: Vec<&Value> = names.map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(names, ["now", "patch", "files__read"]);
    let patch = &found["tools"][1]["function"];
    assert_eq!(patch["parameters"]["required"], json!(["input"]));
    assert_eq!(patch.as_object().unwrap().len(), 4, "{patch}");
    assert_eq!(found["messages"][0]["role"], "system");
    let call = &found["messages"][2]["tool_calls"][0]["function"];
    assert_eq!(
        *call,
        json!({"name": "patch", "arguments": "{\"input\":\"x\"}"})
    );
    // Without tools, the conversation is sent all the same.
    let mut plain = responses_body();
    plain["tools"] = json!([{"type": "web_search"}]);
    let found = upstream(ClientApi::Responses, &plain);
    assert_eq!(found.get("tools"), None);
    assert_eq!(found["messages"][3]["role"], "tool");
}

/// The model server gets every name, also one that our own syntaxes cannot express. A name is sent once.
#[test]
fn names_of_tools() {
    let schema = json!({"type": "object", "properties": {}});
    let names = ["get:time", "-x", "a b", "now", "get:time", "now"];
    let tools = names.map(|name| json!({"name": name, "input_schema": schema}));
    let body = json!({"model": "m", "max_tokens": 9, "tools": tools,
        "messages": [{"role": "user", "content": "Go."}],
        "tool_choice": {"type": "tool", "name": "get:time"}});
    let asked = asked(ClientApi::Messages, &body);
    let found: Value = serde_json::from_slice(asked.body()).unwrap();
    let sent = found["tools"].as_array().unwrap().iter();
    let sent: Vec<&Value> = sent.map(|tool| &tool["function"]["name"]).collect();
    assert_eq!(sent, ["get:time", "-x", "a b", "now"]);
    assert_eq!(found["tool_choice"]["function"]["name"], "get:time");
    let changed = asked.changed_tools().iter();
    let changed: Vec<&str> = changed.map(|tool| &*tool.reason.at).collect();
    assert_eq!(changed, ["/tools/4", "/tools/5"]);
}

/// A namespace is joined with two underscores, also to a name that contains them, and restored.
#[test]
fn namespaces() {
    let tool = |name: &str| json!({"type": "function", "name": name, "parameters": {"type": "object", "properties": {}}});
    let space =
        |name: &str, tools: Value| json!({"type": "namespace", "name": name, "tools": tools});
    let tools = json!([
        space("a", json!([tool("b__c"), tool("b")])),
        space("a__b", json!([tool("c")])),
        space("mcp__x__", json!([tool("y")])),
        tool("a__b"),
    ]);
    let known = [
        ("a__b__c", json!("a"), "b__c"),
        ("a__b_", json!("a"), "b"),
        ("a__b__c_", json!("a__b"), "c"),
        ("mcp__x__y", json!("mcp__x__"), "y"),
        ("a__b", Value::Null, "a__b"),
    ];
    let mut input = vec![json!({"role": "user", "content": "Go."})];
    for (model, namespace, name) in &known {
        let body = json!({"model": "m", "stream": true, "tools": tools, "input": input});
        let mut asked = asked(ClientApi::Responses, &body);
        let sent: Value = serde_json::from_slice(asked.body()).unwrap();
        let functions = sent["tools"].as_array().unwrap().iter();
        let functions: Vec<&Value> = functions.map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(functions, known.each_ref().map(|(model, ..)| *model));
        let piece = piece(0, Some("call_1"), Some(model), "{}");
        let bytes = fed(&mut asked, &stream(&[piece], "tool_calls"), 20);
        let response = crate::responses::strict_reader::read_stream(&bytes);
        let call = response["output"][0].clone();
        assert_eq!(
            (&call["namespace"], &call["name"]),
            (namespace, &json!(name))
        );
        input.truncate(1);
        input.push(call);
        let body = json!({"model": "m", "tools": tools, "input": input});
        let sent = upstream(ClientApi::Responses, &body);
        assert_eq!(
            sent["messages"][1]["tool_calls"][0]["function"]["name"],
            *model
        );
    }
}

#[test]
fn responses_replies() {
    let kinds = |response: &Value| {
        let items = response["output"].as_array().unwrap().iter().map(|item| {
            let text = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
            let call = text("arguments") + &text("input");
            let name = text("namespace") + &text("name");
            [text("type"), text("call_id"), name, call].join(" ")
        });
        items.collect::<Vec<_>>()
    };
    let mut body = responses_body();
    body["stream"] = json!(true);
    for size in [1, usize::MAX] {
        let mut asked = asked(ClientApi::Responses, &body);
        let bytes = fed(&mut asked, &stream(&deltas(), "tool_calls"), size);
        let streamed = crate::responses::strict_reader::read_stream(&bytes);
        let found = kinds(&streamed);
        assert!(found[2].starts_with("function_call call_") && found[2].ends_with(" now {}"));
        let rest: Vec<&String> = found.iter().filter(|item| **item != found[2]).collect();
        assert_eq!(
            rest,
            [
                "reasoning   ",
                "message   ",
                "function_call call_1 filesread {\"path\":\"a\"}",
                "function_call call_2 now {}",
                "custom_tool_call call_3 patch x",
            ]
        );
        assert_eq!(asked.counts().rescued_calls, 1);
    }
}

#[test]
fn messages_replies() {
    let schema = json!({"type": "object", "properties": {}});
    let mut body = json!({"model": "m", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"name": "now", "input_schema": schema}]});
    let mut asking = asked(ClientApi::Messages, &body);
    let bytes = fed(&mut asking, &stream(&deltas(), "tool_calls"), 20);
    let message = crate::messages::strict::read_stream(&bytes);
    let found = format!("{message:?}");
    for text in [
        "I add.",
        "call_1",
        "files__read",
        "call_2",
        "call_3",
        "tool_use",
    ] {
        assert!(found.contains(text), "{text}: {found}");
    }
    assert_eq!(asking.counts().rescued_calls, 1);

    body["stream"] = json!(false);
    let calls = json!([
        {"id": "a", "type": "function", "function": {"name": "now", "arguments": ""}},
        {"id": "b", "type": "function", "function": {"name": "now", "arguments": "oops"}}]);
    let answer = completion(
        &json!({"role": "assistant", "content": null, "tool_calls": calls}),
        "stop",
    );
    let mut asking = asked(ClientApi::Messages, &body);
    let found: Value = serde_json::from_slice(&fed(&mut asking, &answer, 20)).unwrap();
    assert_eq!(
        found["content"],
        json!([
        {"type": "tool_use", "id": "a", "name": "now", "input": {}},
        {"type": "tool_use", "id": "b", "name": "now", "input": "oops"}])
    );
    assert_eq!(found["stop_reason"], "tool_use");
}

#[test]
fn a_truncated_call_is_not_completed() {
    let body = json!({"model": "m", "max_tokens": 9, "stream": true,
        "messages": [{"role": "user", "content": "Go."}],
        "tools": [{"name": "now", "input_schema": {"type": "object", "properties": {}}}]});
    // Reasons that the API does not know, a stop sequence, which it treats as a normal end, and none.
    for reason in [
        json!("abort"),
        json!("stop_sequence"),
        json!("STOP-TOKEN"),
        json!("MAX_TOKENS"),
        json!("length"),
        Value::Null,
    ] {
        let call = [piece(0, Some("a"), Some("now"), "")];
        let bytes = stream(&call, "REASON");
        let bytes = String::from_utf8(bytes)
            .unwrap()
            .replace("\"REASON\"", &reason.to_string());
        let mut messages = asked(ClientApi::Messages, &body);
        let found = String::from_utf8(fed(&mut messages, bytes.as_bytes(), 20)).unwrap();
        assert!(
            found.contains("\"stop_reason\":\"max_tokens\""),
            "{reason}: {found}"
        );
        assert!(!found.contains("{}\"}"), "{reason}: {found}");
    }
    for (mode, kind) in [
        (ArgumentMode::Checked, "message"),
        (ArgumentMode::Stream, "function_call"),
    ] {
        let mut settings = native();
        settings.arguments = mode;
        let adapter = Adapter::new(Secret::new("secret"), settings);
        let body = crate::apis::request(ClientApi::Responses, &json!({"stream": true}));
        let mut asked = crate::apis::asked(&adapter, ClientApi::Responses, &body);
        let call = [piece(0, Some("a"), Some("now"), "{\"a\": ")];
        let bytes = fed(&mut asked, &stream(&call, "length"), 20);
        let found = String::from_utf8(bytes).unwrap();
        assert!(!found.contains("arguments.done"), "{found}");
        let last = found.rsplit("data: ").next().unwrap();
        let response: Value = serde_json::from_str(last).unwrap();
        let item = &response["response"]["output"][0];
        assert_eq!(
            (&item["type"], &item["status"]),
            (&json!(kind), &json!("incomplete"))
        );
    }
}

/// A format beside tools is an instruction, because servers that enforce it prevent calls.
#[test]
fn formats_beside_tools() {
    let schema = json!({"type": "object"});
    let format = json!({"type": "json_schema", "name": "x", "schema": schema});
    let format = |choice: &str| json!({"text": {"format": format}, "output_config": {"format": format}, "tool_choice": choice});
    let words = "(If you call no tool, answer with JSON only";
    for api in [ClientApi::Messages, ClientApi::Responses] {
        for (choice, is_kept, is_described) in [
            ("auto", false, true),
            ("required", false, false),
            ("none", true, false),
        ] {
            let mut body = crate::apis::request(api, &format(choice));
            if api == ClientApi::Messages {
                let choice = if choice == "required" { "any" } else { choice };
                body["tool_choice"] = json!({"type": choice});
            }
            let found = upstream(api, &body);
            assert_eq!(
                found["response_format"].is_object(),
                is_kept,
                "{api:?} {choice}"
            );
            assert_eq!(
                found["messages"].to_string().contains(words),
                is_described,
                "{api:?} {choice}"
            );
        }
    }
}

#[test]
fn choices_of_the_responses_api() {
    let now = json!({"type": "function", "name": "now"});
    for (given, expected) in [
        (
            json!({"type": "allowed_tools", "mode": "auto", "tools": [now]}),
            json!({"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [function(&json!({"name": "now"}))]}}),
        ),
        (
            function(&json!({"name": "now"})),
            function(&json!({"name": "now"})),
        ),
        (now, function(&json!({"name": "now"}))),
    ] {
        let mut body = responses_body();
        body["tool_choice"] = given;
        assert_eq!(
            upstream(ClientApi::Responses, &body)["tool_choice"],
            expected
        );
    }
}

#[test]
fn a_required_call_without_a_tool_of_the_model_server() {
    for api in [ClientApi::Messages, ClientApi::Responses] {
        let hosted = json!([{"type": "web_search", "name": "web_search"}]);
        let mut body =
            crate::apis::request(api, &json!({"tools": hosted, "tool_choice": "required"}));
        if api == ClientApi::Messages {
            body["tool_choice"] = json!({"type": "any"});
        }
        let Ask::Refused(error) = ask(api, &body.to_string()) else {
            panic!("{api:?}");
        };
        assert_eq!(error.status, 400);
        assert!(error.message().contains("requires a call"), "{error}");
    }
}
