//! The examples of `spec/gateway.md` about this API, executed.

use std::fs;

use plaincall_gateway::ModelSettings;
use plaincall_gateway::translation::ClientApi;
use plaincall_testkit::examples::{fences, folder};
use plaincall_wire::sse::Decoder;
use serde_json::{Value, json};

use crate::messages::model::{ask, complete, fed, request, round, upstream};

/// The events of a stream, one per line, without their names, pings, and the id of the message.
fn events(bytes: &[u8]) -> String {
    let mut decoder = Decoder::new();
    let events = decoder.feed(bytes).map(|event| event.unwrap());
    let events = events.filter(|event| event.name.as_deref() != Some("ping"));
    let mut lines: Vec<String> = Vec::new();
    for event in events {
        let data: Value = serde_json::from_str(&event.data).unwrap();
        let mut line = event.data.into_owned();
        for id in [&data["message"]["id"], &data["content_block"]["id"]] {
            if let Some(id) = id.as_str() {
                let (prefix, _) = id.split_once('_').unwrap();
                line = line.replace(id, &format!("{prefix}_1"));
            }
        }
        lines.push(line);
    }
    lines.join("\n")
}

#[test]
fn examples() {
    let text = fs::read_to_string(folder().join("gateway.md")).unwrap();
    let settings = ModelSettings::default();
    let (mut sent, mut reply) = (Value::Null, None);
    let mut count = 0;
    for fence in fences(&text) {
        let at = format!("gateway.md, line {}", fence.line);
        match fence.info[0].as_str() {
            "messages-request" => {
                let fields: Value = serde_json::from_str(&fence.content).expect(&at);
                let mut body = request(&fields);
                body["stream"] = json!(false);
                sent = upstream(&body);
                // The prompt of the tools is the end of the first message.
                let first = sent["messages"][0]["content"].as_str().unwrap();
                let first = first.split("# Calling tools").next().unwrap();
                sent["messages"][0]["content"] = json!(first.trim_end());
            }
            "messages-upstream" => {
                let lines = fence.content.lines();
                let expected: Vec<Value> = lines
                    .map(|line| serde_json::from_str(line).expect(&at))
                    .collect();
                assert_eq!(sent["messages"], Value::from(expected), "{at}");
                count += 1;
            }
            "messages-reply" => reply = Some((fence.info[1].clone(), fence.content)),
            "messages-events" => {
                let (reason, text) = reply.clone().expect(&at);
                let fields = json!({"thinking": {"type": "adaptive"}});
                let mut asked =
                    ask(ClientApi::Messages.path(), &request(&fields), &settings).unwrap();
                let (bytes, _) = fed(&mut asked, &[round(&text, &reason).0], true, usize::MAX);
                assert_eq!(events(&bytes), fence.content, "{at}");
                count += 1;
            }
            "messages-content" => {
                let (reason, text) = reply.take().expect(&at);
                let fields = json!({"thinking": {"type": "adaptive"}});
                let mut message = complete(&fields, &settings, &[&text], &reason);
                for block in &mut message.blocks {
                    if block["type"] == "tool_use" {
                        block["id"] = json!("call_1");
                        let input = block["input"].as_str().unwrap();
                        block["input"] = serde_json::from_str(input).unwrap();
                    }
                }
                let expected: Value = serde_json::from_str(&fence.content).expect(&at);
                assert_eq!(Value::from(message.blocks), expected, "{at}");
                count += 1;
            }
            _ => {}
        }
    }
    assert_eq!(count, 4);
}
