//! Fields of requests, and those that the model server gets.

use plaincall_gateway::ModelSettings;
use plaincall_gateway::Secret;
use plaincall_gateway::translation::{Adapter, Ask, ClientApi, Host};
use serde_json::{Value, json};

use crate::apis::{ALL, request};

/// The request for the model server.
fn upstream(settings: &ModelSettings, api: ClientApi, body: &Value) -> Value {
    let adapter = Adapter::new(Secret::new("secret"), settings.clone());
    let host = Host::new(Secret::new("seed"), 1);
    match adapter.ask(api.path(), body.to_string().as_bytes(), host) {
        Ask::Asked(asked) => serde_json::from_slice(asked.body()).unwrap(),
        Ask::Renamed(body) => serde_json::from_slice(&body).unwrap(),
        Ask::Unchanged => body.clone(),
        other => panic!("{other:?}"),
    }
}

/// Names that only the markers of calls exclude.
#[test]
fn aliases() {
    for (reported, name, alias) in [
        ("agentscope-ai/agentscope", "server:tool", "server_tool"),
        ("Gemini", "default_api:x", "default_api_x"),
        ("a name with blanks", "get the time", "get_the_time"),
        ("a name that is taken", "is:taken", "is_taken_"),
    ] {
        let tool = |name: &str| {
            json!({"type": "function", "function": {"name": name, "parameters": {
            "type": "object", "properties": {"a": {"type": "integer"}}}}})
        };
        let call = json!({"id": "call_1", "type": "function", "function": {"name": name, "arguments": "{\"a\":1}"}});
        let body = json!({"model": "m", "tools": [tool(name), tool("is_taken")],
            "tool_choice": {"type": "function", "function": {"name": name}},
            "messages": [{"role": "user", "content": "Go."},
                {"role": "assistant", "content": null, "tool_calls": [call]},
                {"role": "tool", "tool_call_id": "call_1", "content": "done"}]});
        let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
        let mut asked = crate::apis::asked(&adapter, ClientApi::Chat, &body);
        assert_eq!(asked.changed_tools(), [], "{reported}");
        let sent: Value = serde_json::from_slice(asked.body()).unwrap();
        let text = |index: usize| sent["messages"][index]["content"].as_str().unwrap();
        assert!(text(0).contains(&format!("## {alias}\n")), "{reported}");
        let written = format!("!!!GADGET_START:{alias}\n!!!ARG:a\n1\n!!!GADGET_END\n");
        assert_eq!(text(2), written, "{reported}");
        assert!(
            text(3).starts_with(&format!("Result 1 of 1: tool {alias}\n")),
            "{reported}"
        );
        let answer = crate::native::model::completion(
            &json!({"role": "assistant", "content": written}),
            "stop",
        );
        asked.feed(&answer);
        asked.end(None);
        let found = crate::apis::read_whole(ClientApi::Chat, &asked.take());
        assert_eq!(found.readable(), [(name, "{\"a\":1}")], "{reported}");
    }
}

/// In text mode, the model server gets nothing of the client's tools, with and without them.
#[test]
fn tools_in_text_mode() {
    const EMPTY: [(&str, &str, &str); 7] = [
        ("evalstate/fast-agent#781", "tools", "[]"),
        ("vllm-project/vllm#39780", "tools", "null"),
        ("the AI SDK, with every request", "tool_choice", "null"),
        (
            "the Agents SDK, with every request",
            "parallel_tool_calls",
            "null",
        ),
        ("LangChain", "function_call", "\"auto\""),
        ("LangChain", "functions", "[]"),
        ("LangChain", "functions", "null"),
    ];
    for (reported, field, value) in EMPTY {
        let value: Value = serde_json::from_str(value).unwrap();
        for api in ALL {
            for has_tools in [false, true] {
                let mut body = request(api, &json!({}));
                if !has_tools {
                    body.as_object_mut().unwrap().remove("tools");
                }
                if !has_tools || field != "tools" {
                    body[field] = value.clone();
                }
                let found = upstream(&ModelSettings::default(), api, &body);
                assert!(found["messages"].is_array());
                for field in [
                    "tools",
                    "tool_choice",
                    "parallel_tool_calls",
                    "functions",
                    "function_call",
                ] {
                    assert_eq!(found.get(field), None, "{api:?}: {reported}");
                }
            }
        }
    }
}
