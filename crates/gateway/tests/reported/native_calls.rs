//! Native calls of model servers, and the calls that the client gets.

use std::collections::BTreeSet;

use plaincall_gateway::Secret;
use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi};
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::apis::{ALL, asked, read_complete, read_stream, request};
use crate::native::model::{completion, native, stream};

/// The deltas of a server, and the calls.
struct Fact {
    reported: &'static str,
    /// A piece of a call is `INDEX ID NAME ARGUMENTS`, where `-` is a missing field and `null` is null. Others are `text`,
    /// `thought` and `old` with the rest of the line.
    deltas: &'static [&'static str],
    calls: &'static [&'static str],
    /// Whether the elements of a whole answer are the same pieces.
    is_whole: bool,
}

const FACTS: &[Fact] = &[
    Fact {
        reported: "HKUDS/nanobot#4059, openclaw/openclaw#40996",
        deltas: &[r#"0 edit_22 add {"a":1}"#, r#"0 edit_22 add {"a":2}"#],
        calls: &[r#"add {"a":1}"#, r#"add {"a":2}"#],
        is_whole: true,
    },
    Fact {
        reported: "can1357/oh-my-pi#2055, SamSaffron/term-llm#314",
        deltas: &[r#"0 x add {"a":1}"#, "1 x now {}"],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: true,
    },
    Fact {
        reported: "apache/maka#1976",
        deltas: &[r#"0 - add {"a":"#, "0 - - 1}", "0 - now -", "0 - - {}"],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: false,
    },
    Fact {
        reported: "a name in each piece, and again at the end",
        deltas: &[r#"0 x add {"a":"#, "0 x add 1}", "0 x add -"],
        calls: &[r#"add {"a":1}"#],
        is_whole: false,
    },
    Fact {
        reported: "the beginning of a call with the same name and id as the one before",
        deltas: &[r#"0 x add {"a":1}"#, "0 x add -", r#"0 - - {"a":2}"#],
        calls: &[r#"add {"a":1}"#, r#"add {"a":2}"#],
        is_whole: false,
    },
    Fact {
        reported: "pieces in turn",
        deltas: &[
            "0 a add -",
            "1 b add -",
            r#"0 - - {"a":"#,
            r#"1 - - {"a":2"#,
            "0 - - 1}",
            "1 - - }",
        ],
        calls: &[r#"add {"a":1}"#, r#"add {"a":2}"#],
        is_whole: false,
    },
    Fact {
        reported: "reasoning and a blank between pieces",
        deltas: &[
            r#"0 a add {"a":"#,
            "thought Hm.",
            "text  ",
            "0 - - 1}",
            "1 b now {}",
        ],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: false,
    },
    Fact {
        reported: "vllm-project/vllm#28806, open-webui/open-webui#27195",
        deltas: &["0 a now null", "1 b now -", "2 c now \"\""],
        calls: &["now {}", "now {}", "now {}"],
        is_whole: true,
    },
    Fact {
        reported: "numbers as ids, and texts as indexes",
        deltas: &[
            r#"json {"index":"0","id":7,"type":"function","function":{"name":"add","arguments":"{\"a\":1}"}}"#,
            r#"json {"index":"1","id":-8,"function":{"name":"now","arguments":{}}}"#,
        ],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: true,
    },
    Fact {
        reported: "the same in pieces",
        deltas: &[
            r#"json {"index":"0","id":7,"function":{"name":"add"}}"#,
            r#"json {"index":"1","id":8,"function":{"name":"now"}}"#,
            r#"json {"index":"0","function":{"arguments":"{\"a\":1}"}}"#,
            r#"json {"index":"1.0","id":null,"function":{"arguments":"{}"}}"#,
        ],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: false,
    },
    Fact {
        reported: "ids of Kimi",
        deltas: &[
            r#"json {"index":0,"id":"functions.add:0","function":{"name":"add","arguments":"{\"a\":1}"}}"#,
            r#"json {"index":1,"id":"functions.now:1","function":{"name":"now","arguments":"{}"}}"#,
        ],
        calls: &[r#"add {"a":1}"#, "now {}"],
        is_whole: true,
    },
    Fact {
        reported: "older servers",
        deltas: &[r#"old {"name": "add", "arguments": "{\"a\":1}"}"#],
        calls: &[r#"add {"a":1}"#],
        is_whole: true,
    },
    Fact {
        reported: "older servers, in pieces",
        deltas: &[
            r#"old {"name": "add", "arguments": ""}"#,
            r#"old {"arguments": "{\"a\":"}"#,
            r#"old {"arguments": "1}"}"#,
        ],
        calls: &[r#"add {"a":1}"#],
        is_whole: false,
    },
    Fact {
        reported: "vllm-project/vllm#32587; gpt-oss, Kimi, Gemini",
        deltas: &[
            r#"0 a add<|channel|>commentary {"a":1}"#,
            "1 b functions.now {}",
            "2 c default_api:now<|constrain|>json {}",
            "3 d functions.later {}",
            "4 e no {}",
        ],
        calls: &[
            r#"add {"a":1}"#,
            "now {}",
            "now {}",
            "functions.later {}",
            "no {}",
        ],
        is_whole: true,
    },
    Fact {
        reported: "the same call as text after it",
        deltas: &[
            r#"0 a add {"a":1}"#,
            r#"text <tool_call>{"name": "add", "arguments": {"a": 1}}</tool_call>"#,
        ],
        calls: &[r#"add {"a":1}"#],
        is_whole: false,
    },
];

/// Calls that arrive as text with names and ids of templates.
#[test]
fn rescued() {
    let adapter = Adapter::new(Secret::new("secret"), native());
    for (reported, text) in [
        (
            "ml-explore/mlx-lm#1375, vllm-project/vllm#9019",
            r#"[TOOL_CALLS][{"name": "add", "arguments": {"a": 1}}]"#,
        ),
        (
            "anomalyco/opencode#1680, ggml-org/llama.cpp#14349",
            r#"[TOOL_CALLS]add[ARGS]{"a": 1}"#,
        ),
        (
            "gpt-oss, Kimi",
            r#"<tool_call>{"name": "functions.add", "arguments": {"a": 1}}</tool_call>"#,
        ),
    ] {
        let message = json!({"role": "assistant", "content": text});
        let mut body = request(ClientApi::Chat, &json!({"stream": false}));
        let mut call = || {
            let mut asked = asked(&adapter, ClientApi::Chat, &body);
            asked.feed(&completion(&message, "stop"));
            asked.end(None);
            let recorded = crate::apis::read_whole(ClientApi::Chat, &asked.take());
            // An untrusted text with the same call.
            body["messages"][0]["content"] = json!(text);
            recorded.calls.into_iter().next()
        };
        let found = call().expect(reported);
        assert_eq!(
            (&*found.name, &*found.arguments),
            ("add", r#"{"a":1}"#),
            "{reported}"
        );
        let is_short =
            found.id.len() == 9 && found.id.bytes().all(|byte| byte.is_ascii_alphanumeric());
        assert_eq!(
            is_short,
            text.starts_with("[TOOL_CALLS]"),
            "{reported}: {}",
            found.id
        );
        assert_eq!(call(), None, "{reported}");
    }
}

/// A delta of a server.
fn delta(line: &str) -> Value {
    let (first, rest) = line.split_once(' ').unwrap();
    match first {
        "text" => return json!({"content": rest}),
        "thought" => return json!({"reasoning_content": rest}),
        "json" => {
            return json!({"tool_calls": [serde_json::from_str::<Value>(rest).unwrap()]});
        }
        "old" => return json!({"function_call": serde_json::from_str::<Value>(rest).unwrap()}),
        _ => {}
    }
    let parts: Vec<&str> = line.splitn(4, ' ').collect();
    let mut call = json!({"index": first.parse::<u64>().unwrap(), "function": {}});
    let given = |part: &&str| *part != "-";
    if let Some(id) = Some(parts[1]).filter(given) {
        call["id"] = json!(format!("call_{id}"));
        call["type"] = json!("function");
    }
    if let Some(name) = Some(parts[2]).filter(given) {
        call["function"]["name"] = json!(name);
    }
    match parts[3] {
        "-" => {}
        "null" => call["function"]["arguments"] = Value::Null,
        text => call["function"]["arguments"] = json!(text),
    }
    json!({"tool_calls": [call]})
}

fn client_reply(api: ClientApi, is_streamed: bool, answer: &[u8]) -> Recorded {
    let adapter = Adapter::new(Secret::new("secret"), native());
    let mut asked = asked(
        &adapter,
        api,
        &request(api, &json!({"stream": is_streamed})),
    );
    asked.feed(answer);
    assert_eq!(asked.end(None), AskEnd::Done);
    let bytes = asked.take();
    if is_streamed {
        read_stream(api, &bytes, false)
    } else {
        read_complete(api, &bytes);
        crate::apis::read_whole(api, &bytes)
    }
}

fn check(fact: &Fact, api: ClientApi, recorded: &Recorded) {
    let calls = recorded.calls.iter();
    let calls: Vec<String> = calls
        .map(|call| format!("{} {}", call.name, call.arguments))
        .collect();
    assert_eq!(calls, fact.calls, "{api:?}: {}", fact.reported);
    let ids: BTreeSet<&str> = recorded.calls.iter().map(|call| &*call.id).collect();
    assert_eq!(ids.len(), calls.len(), "{api:?}: {}", fact.reported);
    assert!(!ids.contains(""), "{api:?}: {}", fact.reported);
    let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    let are_valid = ids.iter().all(|id| id.bytes().all(is_valid));
    assert!(are_valid || api != ClientApi::Messages, "{ids:?}");
}

#[test]
fn streamed() {
    for fact in FACTS {
        let deltas: Vec<Value> = fact.deltas.iter().map(|line| delta(line)).collect();
        let answer = stream(&deltas, "stop");
        for api in ALL {
            check(fact, api, &client_reply(api, true, &answer));
        }
    }
}

#[test]
fn whole() {
    for fact in FACTS.iter().filter(|fact| fact.is_whole) {
        let mut message = json!({"role": "assistant", "content": null});
        let mut calls = Vec::new();
        for mut delta in fact.deltas.iter().map(|line| delta(line)) {
            match delta.get_mut("tool_calls") {
                Some(call) => calls.push(call[0].take()),
                None => message["function_call"] = delta["function_call"].take(),
            }
        }
        if !calls.is_empty() {
            message["tool_calls"] = json!(calls);
        }
        let answer = completion(&message, "stop");
        for api in ALL {
            check(fact, api, &client_reply(api, false, &answer));
        }
    }
}

/// The model server gets its own ids back.
#[test]
fn ids_come_back() {
    for id in ["functions.now:0", "call_1", "id_x_2e"] {
        let call =
            json!({"id": id, "type": "function", "function": {"name": "now", "arguments": "{}"}});
        let answer = completion(&json!({"role": "assistant", "tool_calls": [call]}), "stop");
        let recorded = client_reply(ClientApi::Messages, false, &answer);
        let given = &recorded.calls[0].id;
        let mut body = request(ClientApi::Messages, &json!({"stream": false}));
        let messages = body["messages"].as_array_mut().unwrap();
        messages.push(json!({"role": "assistant", "content": [
            {"type": "tool_use", "id": given, "name": "now", "input": {}}]}));
        messages.push(json!({"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": given, "content": "noon"}]}));
        let adapter = Adapter::new(Secret::new("secret"), native());
        let asked = asked(&adapter, ClientApi::Messages, &body);
        let sent: Value = serde_json::from_slice(asked.body()).unwrap();
        let [.., turn, result] = sent["messages"].as_array().unwrap().as_slice() else {
            panic!("{sent}");
        };
        let found = (&turn["tool_calls"][0]["id"], &result["tool_call_id"]);
        assert_eq!(found, (&json!(id), &json!(id)));
    }
}
