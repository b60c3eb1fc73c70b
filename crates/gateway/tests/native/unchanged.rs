//! Requests and native calls of chat completions.

use std::collections::{BTreeMap, BTreeSet};

use plaincall_gateway::translation::{Adapter, Ask, ClientApi};
use plaincall_gateway::{ArgumentMode, Secret};
use plaincall_wire::sse::Decoder;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::native::model::{ask, asked, completion, fed, native, stream};
use crate::replies::model::request;

fn call(index: u64, id: &str, name: &str, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "id": id, "type": "function",
        "function": {"name": name, "arguments": arguments}, "extra_content": {"signature": "s"}}]})
}

fn piece(index: u64, arguments: &str) -> Value {
    json!({"tool_calls": [{"index": index, "function": {"arguments": arguments}}]})
}

/// The deltas that the client gets, without the first one, which has the role.
fn deltas(bytes: &[u8]) -> Vec<Value> {
    let mut decoder = Decoder::new();
    let events = decoder
        .feed(bytes)
        .map(|event| event.unwrap().data.into_owned());
    let chunks = events.filter(|data| data != "[DONE]");
    let choices = chunks.map(|data| {
        let chunk: Value = serde_json::from_str(&data).unwrap();
        assert_eq!(chunk.get("error"), None, "{data}");
        chunk["choices"][0].clone()
    });
    let choices: Vec<Value> = choices.collect();
    assert_eq!(choices[0]["delta"]["role"], "assistant");
    choices[1..].to_vec()
}

#[test]
fn a_request_is_sent_byte_for_byte() {
    let body = request(
        &json!({"tool_choice": "required", "temperature": 0.5, "messages": [
        {"role": "developer", "content": "!!!GADGET_START:add"},
        {"role": "user", "content": "Add."},
        {"role": "assistant", "content": null, "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
        {"role": "tool", "tool_call_id": "c1", "content": "5"}]}),
    );
    let body = serde_json::to_string_pretty(&body).unwrap();
    let Ask::Asked(asked) = ask(ClientApi::Chat, &body) else {
        panic!("it has tools");
    };
    assert_eq!(asked.body(), body.as_bytes());
    assert_eq!(asked.changed_tools(), []);
}

/// Another name of a model changes nothing else, with and without tools.
#[test]
fn only_the_name_of_a_model_is_replaced() {
    for tools in [r#"[{"type":"function","function":{"name":"now"}}]"#, "[]"] {
        let body = |model: &str| {
            format!(
                r#"{{"messages":[{{"role":"developer","content":"Be brief."}},{{"role":"user","content":"Go.","x":1.50}}],"model":"{model}","tools":{tools},"temperature":0.50,"later":{{"b":1,"a":1e400}}}}"#
            )
        };
        let sent = match ask(ClientApi::Chat, &body("fast")) {
            Ask::Asked(asked) => asked.body().to_vec(),
            Ask::Renamed(sent) => sent,
            other => panic!("{other:?}"),
        };
        let sent = String::from_utf8(sent).unwrap();
        let parts = |body: &str| {
            let fields: BTreeMap<String, Box<RawValue>> = serde_json::from_str(body).unwrap();
            let fields = fields.into_iter();
            fields
                .map(|(name, value)| (name, value.get().to_owned()))
                .collect::<BTreeMap<_, _>>()
        };
        let (mut sent, mut expected) = (parts(&sent), parts(&body("qwen")));
        for fields in [&mut sent, &mut expected] {
            // The known fields of a message come in a fixed order.
            let messages: Value =
                serde_json::from_str(&fields.remove("messages").unwrap()).unwrap();
            fields.insert("messages".to_owned(), messages.to_string());
        }
        assert_eq!(sent, expected);
    }
    // Requests of other APIs are converted, with the role that every server knows.
    let body = json!({"model": "fast", "tools": [{"type": "function", "name": "now"}],
        "input": [{"role": "developer", "content": "Be brief."}]});
    let asked = asked(ClientApi::Responses, &body);
    let sent: Value = serde_json::from_slice(asked.body()).unwrap();
    assert_eq!(
        (&sent["model"], &sent["messages"][0]["role"]),
        (&json!("qwen"), &json!("system"))
    );
}

#[test]
fn what_cannot_be_read_as_a_call_passes_through() {
    for fields in [
        json!({"tools": []}),
        json!({"tool_choice": "none"}),
        json!({"tool_choice": {"type": "custom", "custom": {"name": "x"}}}),
        json!({"n": 2}),
        json!({"logprobs": true}),
        json!({"tools": [{"type": "custom", "custom": {"name": "x"}}]}),
    ] {
        let asked = ask(ClientApi::Chat, &request(&fields).to_string());
        assert!(matches!(asked, Ask::Unchanged), "{fields}: {asked:?}");
    }
}

#[test]
fn native_calls_are_returned_unchanged() {
    let pieces = [
        json!({"content": "I "}),
        json!({"content": "add.\n"}),
        call(0, "abc", "add", ""),
        piece(0, "{\"a\":"),
        piece(0, " 5}"),
        // It fits no schema, and is sent all the same.
        call(1, "def", "now", "{\"never\": [defined]}"),
        piece(0, " "),
    ];
    // The pieces of a call wait for its end, as one.
    let expected = [
        pieces[0].clone(),
        pieces[1].clone(),
        call(0, "abc", "add", "{\"a\": 5}"),
        pieces[5].clone(),
    ];
    for size in [1, 7, usize::MAX] {
        let mut asked = asked(ClientApi::Chat, &request(&json!({})));
        let bytes = fed(&mut asked, &stream(&pieces, "tool_calls"), size);
        let found = deltas(&bytes);
        let (last, found) = found.split_last().unwrap();
        let found: Vec<&Value> = found.iter().map(|choice| &choice["delta"]).collect();
        // A blank after the end of a call is omitted.
        assert_eq!(found, expected.iter().collect::<Vec<_>>());
        assert_eq!(last["finish_reason"], "tool_calls");
        let counts = asked.counts();
        assert_eq!((counts.native_calls, counts.calls), (2, 0));
    }
}

#[test]
fn servers_that_give_calls_no_index_or_the_same_are_understood() {
    let whole = |id: &str, index: Option<u64>| {
        let mut delta = call(0, id, "now", "{}");
        delta["tool_calls"][0]["index"] = json!(index);
        delta
    };
    for pieces in [
        [whole("a", Some(0)), whole("b", Some(0))],
        [whole("a", None), whole("b", None)],
        [whole("", None), whole("", None)],
    ] {
        let mut asked = asked(ClientApi::Chat, &request(&json!({})));
        let found = deltas(&fed(&mut asked, &stream(&pieces, "stop"), usize::MAX));
        let calls = found
            .iter()
            .filter_map(|choice| choice["delta"]["tool_calls"].get(0));
        let calls: Vec<&Value> = calls.collect();
        assert_eq!(calls.len(), 2, "{found:?}");
        assert_eq!([&calls[0]["index"], &calls[1]["index"]], [0, 1]);
        assert_ne!(calls[0]["id"], calls[1]["id"]);
        // Some servers report an ordinary end.
        assert_eq!(found[2]["finish_reason"], "tool_calls");
    }
}

#[test]
fn complete_answers_keep_their_calls() {
    let calls = json!([
        {"id": "abc", "type": "function", "function": {"name": "add", "arguments": "{\"a\": 5}"}, "extra_content": {"signature": "s"}},
        {"id": "def", "type": "function", "function": {"name": "unknown", "arguments": ""}},
    ]);
    let message =
        json!({"role": "assistant", "content": null, "annotations": [], "tool_calls": calls});
    let mut asked = asked(ClientApi::Chat, &request(&json!({"stream": false})));
    let answer = completion(&message, "tool_calls");
    let found: Value = serde_json::from_slice(&fed(&mut asked, &answer, usize::MAX)).unwrap();
    let mut expected: Value = serde_json::from_slice(&answer).unwrap();
    expected["choices"][0]["message"]["tool_calls"][1]["function"]["arguments"] = json!("{}");
    assert_eq!(found, expected);
}

/// Some servers give their calls one id, or none.
#[test]
fn each_element_of_a_whole_answer_is_a_call() {
    let call = |id: &str, name: &str, arguments: &str| json!({"index": 0, "id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
    for id in ["edit:22", ""] {
        let calls = [
            call(id, "add", r#"{"a":1}"#),
            call(id, "add", r#"{"a":2}"#),
            call(id, "now", "{}"),
        ];
        let message = json!({"role": "assistant", "content": null, "tool_calls": calls});
        let mut asked = asked(ClientApi::Chat, &request(&json!({"stream": false})));
        let answer = completion(&message, "tool_calls");
        let found: Value = serde_json::from_slice(&fed(&mut asked, &answer, usize::MAX)).unwrap();
        let found = found["choices"][0]["message"]["tool_calls"].as_array();
        let found = found.unwrap();
        let functions: Vec<&Value> = found.iter().map(|call| &call["function"]).collect();
        let expected: Vec<&Value> = calls.iter().map(|call| &call["function"]).collect();
        assert_eq!(functions, expected);
        let ids = found.iter().map(|call| call["id"].as_str().unwrap());
        let ids: BTreeSet<&str> = ids.collect();
        assert_eq!(ids.len(), 3, "{found:?}");
        assert!(id.is_empty() || found[0]["id"] == id);
    }
}

/// Pieces that wait take the memory of their text.
#[test]
fn pieces_that_wait_are_one() {
    let text = format!("{{\"a\":5{}}}", " ".repeat(100_000));
    let mut pieces = vec![call(0, "a", "add", "")];
    for character in text.chars() {
        pieces.extend([piece(0, &character.to_string()), piece(0, "")]);
    }
    let mut asked = asked(ClientApi::Chat, &request(&json!({})));
    let found = deltas(&fed(&mut asked, &stream(&pieces, "tool_calls"), 1 << 16));
    let found: Vec<&Value> = found.iter().map(|choice| &choice["delta"]).collect();
    assert_eq!(found, [&call(0, "a", "add", &text), &json!({})]);
}

/// Pieces of a call are sent once it is complete, or as they arrive.
#[test]
fn pieces_of_calls() {
    let end = |reason: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{}},\"finish_reason\":\"{reason}\"}}]}}\n\n")
    };
    let data = |delta: &Value| format!("data: {}\n\n", json!({"choices": [{"delta": delta}]}));
    let parts = [
        data(&call(0, "a", "now", "")),
        data(&call(1, "b", "add", "{\"a\":")),
        data(&piece(1, "5}")),
        data(&call(2, "c", "add", "{\"a\": \"x\\")),
        end("length"),
    ];
    let checked = [
        vec![],
        vec![],
        vec![],
        vec![],
        vec!["", "{}", "{\"a\":5}", "length"],
    ];
    let streamed = [
        vec![""],
        vec![],
        vec!["{}", "{\"a\":5}"],
        vec!["{\"a\": \"x\\"],
        vec!["\\\"]", "length"],
    ];
    for (mode, expected) in [
        (ArgumentMode::Checked, checked),
        (ArgumentMode::Stream, streamed),
    ] {
        let mut settings = native();
        settings.arguments = mode;
        let adapter = Adapter::new(Secret::new("secret"), settings);
        let mut asked = crate::apis::asked(&adapter, ClientApi::Chat, &request(&json!({})));
        for (part, expected) in parts.iter().zip(expected) {
            asked.feed(part.as_bytes());
            let bytes = String::from_utf8(asked.take()).unwrap();
            let found = bytes.lines().filter_map(|line| {
                let chunk: Value = serde_json::from_str(line.strip_prefix("data: ")?).unwrap();
                let choice = &chunk["choices"][0];
                let arguments = &choice["delta"]["tool_calls"][0]["function"]["arguments"];
                let text = arguments.as_str().or(choice["finish_reason"].as_str());
                text.map(str::to_owned)
            });
            assert_eq!(found.collect::<Vec<_>>(), expected, "{mode:?}: {part}");
        }
        assert_eq!(asked.counts().truncated_calls, 1);
    }
}
