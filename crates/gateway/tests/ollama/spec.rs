//! The examples of `spec/gateway.md` about this API, executed.

use std::fs;

use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_testkit::examples::{fences, folder};
use serde_json::{Value, json};

use crate::apis::{asked, request};
use crate::native::model::completion;
use crate::replies::model::Stream;

/// The client's bytes, with another id of the call.
fn reply(reason: &str, text: &str, is_streamed: bool) -> String {
    let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
    let mut body = request(ClientApi::Ollama, &json!({"stream": is_streamed}));
    body["model"] = json!("m");
    let mut asked = asked(&adapter, ClientApi::Ollama, &body);
    let usage = json!({"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12});
    if is_streamed {
        let usage = json!({"choices": [], "usage": usage}).to_string();
        let _ = asked.feed(
            &Stream::new()
                .texts([text])
                .finish(reason)
                .data(&usage)
                .done()
                .0,
        );
    } else {
        let answer = completion(&json!({"role": "assistant", "content": text}), reason);
        let mut answer: Value = serde_json::from_slice(&answer).unwrap();
        answer["usage"] = usage;
        let _ = asked.feed(answer.to_string().as_bytes());
    }
    assert_eq!(asked.end(None), AskEnd::Done);
    let mut bytes = String::from_utf8(asked.take()).unwrap();
    let id = bytes.split(r#""id":""#).nth(1).unwrap();
    let id = id.split('"').next().unwrap().to_owned();
    bytes = bytes.replace(&id, "call_1");
    bytes.trim_end().to_owned()
}

#[test]
fn examples() {
    let text = fs::read_to_string(folder().join("gateway.md")).unwrap();
    let (mut sent, mut given) = (Value::Null, None);
    let mut count = 0;
    for fence in fences(&text) {
        let at = format!("gateway.md, line {}", fence.line);
        let given_reply = || -> (String, String) { given.clone().expect(&at) };
        match fence.info[0].as_str() {
            "ollama-request" => {
                let fields: Value = serde_json::from_str(&fence.content).expect(&at);
                let adapter = Adapter::new(Secret::new("secret"), ModelSettings::default());
                let body = request(ClientApi::Ollama, &fields);
                let asked = asked(&adapter, ClientApi::Ollama, &body);
                let body: Value = serde_json::from_slice(asked.body()).unwrap();
                // The first message is the prompt of the tools.
                sent = body["messages"].as_array().unwrap()[1..].into();
            }
            "ollama-upstream" => {
                let lines = fence.content.lines();
                let expected: Vec<Value> = lines
                    .map(|line| serde_json::from_str(line).expect(&at))
                    .collect();
                assert_eq!(sent, Value::from(expected), "{at}");
                count += 1;
            }
            "ollama-reply" => given = Some((fence.info[1].clone(), fence.content)),
            "ollama-lines" | "ollama-response" => {
                let (reason, text) = given_reply();
                let is_streamed = fence.info[0] == "ollama-lines";
                assert_eq!(reply(&reason, &text, is_streamed), fence.content, "{at}");
                count += 1;
            }
            _ => {}
        }
    }
    assert_eq!(count, 3);
}
