//! The requests that the model server gets.

use plaincall_gateway::translation::{Adapter, Ask, ClientApi, Host};
use plaincall_gateway::{ModelSettings, Secret};
use serde_json::{Value, json};

use crate::native::model::native;

fn ask(settings: ModelSettings, fields: &Value) -> Ask {
    let mut body = json!({"model": "m", "messages": [{"role": "user", "content": "Go."}]});
    for (name, value) in fields.as_object().unwrap() {
        body[name] = value.clone();
    }
    let adapter = Adapter::new(Secret::new("secret"), settings);
    let host = Host::new(Secret::new("seed"), 1);
    adapter.ask(ClientApi::Ollama.path(), body.to_string().as_bytes(), host)
}

fn sent(settings: ModelSettings, fields: &Value) -> Value {
    match ask(settings, fields) {
        Ask::Asked(asked) => serde_json::from_slice(asked.body()).unwrap(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn fields() {
    let schema = json!({"type": "object"});
    let form = json!({"type": "json_schema", "json_schema": {"name": "output", "schema": schema}});
    for (given, expected) in [
        (json!({}), json!({})),
        (json!({"stream": false}), json!({"stream": false})),
        (json!({"stream": null}), json!({})),
        (
            json!({"keep_alive": "5m", "truncate": true, "shift": true, "logprobs": true}),
            json!({}),
        ),
        (json!({"format": ""}), json!({})),
        (json!({"format": null}), json!({})),
        (
            json!({"format": "json"}),
            json!({"response_format": {"type": "json_object"}}),
        ),
        (json!({"format": schema}), json!({"response_format": form})),
        (json!({"think": true}), json!({})),
        (json!({"think": null}), json!({})),
        (json!({"think": false}), json!({"reasoning_effort": "none"})),
        (json!({"think": "low"}), json!({"reasoning_effort": "low"})),
        (json!({"options": null}), json!({})),
        (
            json!({"options": {"num_predict": 9, "temperature": 0.50, "seed": 7, "stop": ["x"], "top_p": 0.9,
                "top_k": 4, "min_p": 0.1, "presence_penalty": 1, "frequency_penalty": 2, "num_ctx": 4096, "mirostat": 1}}),
            json!({"max_tokens": 9, "temperature": 0.50, "seed": 7, "stop": ["x"], "top_p": 0.9, "top_k": 4, "min_p": 0.1,
                "presence_penalty": 1, "frequency_penalty": 2}),
        ),
        (
            json!({"options": {"num_predict": -1, "seed": null}}),
            json!({}),
        ),
    ] {
        let mut expected = expected;
        expected["model"] = json!("m");
        expected["messages"] = json!([{"role": "user", "content": "Go."}]);
        if given.get("stream") != Some(&json!(false)) {
            expected["stream"] = json!(true);
            expected["stream_options"] = json!({"include_usage": true});
        }
        assert_eq!(sent(ModelSettings::default(), &given), expected, "{given}");
    }
}

#[test]
fn invalid_requests() {
    for (given, message) in [
        (
            json!({"messages": []}),
            "`messages` is empty: the gateway loads and unloads no models",
        ),
        (
            json!({"messages": null}),
            "`messages` is empty: the gateway loads and unloads no models",
        ),
        (
            json!({"format": "xml"}),
            "invalid `format`; it must be \"json\" or a JSON Schema",
        ),
        (
            json!({"messages": 1}),
            "the request body cannot be parsed: ",
        ),
    ] {
        let Ask::Refused(error) = ask(ModelSettings::default(), &given) else {
            panic!("{given}");
        };
        assert_eq!(error.status, 400);
        assert!(error.message().starts_with(message), "{error}");
        let body = ClientApi::Ollama.error_body(&error, Some("req_1"));
        assert_eq!(
            body,
            json!({"error": error.message()}).to_string().into_bytes()
        );
    }
}

#[test]
fn images() {
    let url = |kind: &str, data: &str| {
        let url = format!("data:image/{kind};base64,{data}");
        json!({"type": "image_url", "image_url": {"url": url}})
    };
    let message = json!({"role": "user", "content": "See.", "images": ["/9j/4A", "R0lGODlh", "UklGRg", "iVBORw"]});
    let found = sent(ModelSettings::default(), &json!({"messages": [message]}));
    let text = json!({"type": "text", "text": "See."});
    let expected = json!([
        text,
        url("jpeg", "/9j/4A"),
        url("gif", "R0lGODlh"),
        url("webp", "UklGRg"),
        url("png", "iVBORw")
    ]);
    assert_eq!(found["messages"][0]["content"], expected);
}

/// Published clients send no ids, so names and order decide; `=ID` is an id of the client.
#[test]
fn results_belong_to_calls() {
    for (sent_messages, expected) in [
        (
            "call add now; result add 5; result now noon",
            "call00001 call00002 | call00001 5 | call00002 noon",
        ),
        (
            "call add now; result now noon; result add 5",
            "call00001 call00002 | call00002 noon | call00001 5",
        ),
        (
            "call add add; result add 5; result add 6",
            "call00001 call00002 | call00001 5 | call00002 6",
        ),
        // Older clients do not name the tool.
        (
            "call add now; result - 5; result - noon",
            "call00001 call00002 | call00001 5 | call00002 noon",
        ),
        (
            "call add=x now; result =x 5; result - noon",
            "x call00002 | x 5 | call00002 noon",
        ),
        // A call without a result is not that of a later turn.
        (
            "call add now; result now noon; call add; result add 7",
            "call00001 call00002 | call00002 noon | call00003 | call00003 7",
        ),
        (
            "call add; call now; result add 5; result now noon",
            "call00001 | call00001 5 | call00002 | call00002 noon",
        ),
        ("call add; result other 5", "call00001 | - other 5"),
    ] {
        let messages = sent_messages.split("; ").map(|line| {
            let (kind, rest) = line.split_once(' ').unwrap();
            if kind == "result" {
                let (tool, content) = rest.split_once(' ').unwrap();
                return match tool.strip_prefix('=') {
                    Some(id) => json!({"role": "tool", "tool_call_id": id, "content": content}),
                    None if tool == "-" => json!({"role": "tool", "content": content}),
                    None => json!({"role": "tool", "tool_name": tool, "content": content}),
                };
            }
            let calls = rest.split(' ').map(|call| {
                let (name, id) = call.split_once('=').unwrap_or((call, ""));
                let mut call =
                    json!({"function": {"index": 0, "name": name, "arguments": {"a": 5}}});
                if !id.is_empty() {
                    call["id"] = json!(id);
                }
                call
            });
            json!({"role": "assistant", "content": "", "tool_calls": calls.collect::<Vec<_>>()})
        });
        let mut messages: Vec<Value> = messages.collect();
        messages.insert(0, json!({"role": "user", "content": "Go."}));
        let settings = {
            let mut settings = native();
            settings.system_anywhere = true;
            settings
        };
        let body = json!({"messages": messages, "tools": crate::replies::model::tools()});
        let found = sent(settings, &body);
        let found = found["messages"].as_array().unwrap().iter().skip(1);
        let found = found.map(|message| {
            if message["role"] == "tool" {
                let text = |field: &str| message[field].as_str().unwrap_or("-").to_owned();
                let name = message["name"].as_str().map(|name| format!(" {name}"));
                return format!(
                    "{}{} {}",
                    text("tool_call_id"),
                    name.unwrap_or_default(),
                    text("content")
                );
            }
            assert_eq!(
                message.get("content").cloned().unwrap_or_default(),
                Value::Null
            );
            let calls = message["tool_calls"].as_array().unwrap().iter();
            let calls = calls.map(|call| {
                assert_eq!(call["type"], "function");
                assert_eq!(call["function"]["arguments"], r#"{"a":5}"#);
                assert_eq!(call["function"].as_object().unwrap().len(), 2);
                call["id"].as_str().unwrap()
            });
            calls.collect::<Vec<_>>().join(" ")
        });
        let found: Vec<String> = found.collect();
        assert_eq!(found.join(" | "), expected, "{sent_messages}");
    }
}
