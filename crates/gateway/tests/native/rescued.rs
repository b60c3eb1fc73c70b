//! Calls that arrive as text.

use plaincall_gateway::translation::ClientApi;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::strict_client::{Recorded, read_answer};
use serde_json::{Value, json};

use crate::native::model::{asked_once as asked, completion, fed, stream};
use crate::replies::model::request;

const CALL: &str = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>";

fn letters(text: &str) -> Vec<Value> {
    text.chars()
        .map(|c| json!({"content": c.to_string()}))
        .collect()
}

/// Returns the client's answer for these deltas, and the number of rescued calls.
fn answer(fields: &Value, deltas: &[Value], reason: &str) -> (Recorded, u64) {
    let mut asked = asked(ClientApi::Chat, &request(fields));
    let bytes = fed(&mut asked, &stream(deltas, reason), 50);
    (read_answer(&bytes, false), asked.counts().rescued_calls)
}

fn text_answer(fields: &Value, text: &str) -> (Recorded, u64) {
    answer(fields, &letters(text), "stop")
}

#[test]
fn a_call_as_text_becomes_a_call() {
    for text in [
        CALL,
        "\n\n<function=add>\n<parameter=a>\n5\n</parameter>\n</function>\n\n",
        "[TOOL_CALLS]add[ARGS]{\"a\": 5}",
        "```json\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n```",
        "{\"name\": \"add\", \"arguments\": {\"a\": 5}}",
        "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END",
        "🛠️[add 5]🛠️[/end]",
    ] {
        let (recorded, rescued) = text_answer(&json!({}), text);
        assert_eq!(recorded.readable(), [("add", "{\"a\":5}")], "{text}");
        assert_eq!((&*recorded.content, rescued), ("", 1), "{text}");
        assert_eq!(recorded.finish_reason.as_deref(), Some("tool_calls"));
        let message = json!({"role": "assistant", "content": text});
        let mut asked = asked(ClientApi::Chat, &request(&json!({"stream": false})));
        let bytes = fed(&mut asked, &completion(&message, "stop"), 50);
        let whole: Value = serde_json::from_slice(&bytes).unwrap();
        let choice = &whole["choices"][0];
        let call = &choice["message"]["tool_calls"][0]["function"];
        assert_eq!(*call, json!({"name": "add", "arguments": "{\"a\":5}"}));
        assert_eq!(choice["message"]["content"], Value::Null, "{text}");
        assert_eq!(choice["finish_reason"], "tool_calls");
    }
}

#[test]
fn text_around_calls_stays() {
    let text = format!("I add.\n\n{CALL}\n\n{CALL}\n\n");
    let (recorded, rescued) = text_answer(&json!({}), &text);
    assert_eq!(recorded.content, "I add.\n\n");
    assert_eq!((recorded.calls.len(), rescued), (2, 2));
    // A call before other text is an example.
    let text = format!("{text}Done.\n");
    let (recorded, rescued) = text_answer(&json!({}), &text);
    assert_eq!((recorded.content, rescued), (text, 0));
    for text in ["  \n", "\n\nHello\n", "{\"name\": \"add\"", "<tool_call>"] {
        let (recorded, rescued) = text_answer(&json!({}), text);
        assert_eq!((&*recorded.content, rescued), (text, 0));
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"));
    }
}

#[test]
fn an_echo_stays_text() {
    let bare = "{\"name\": \"add\", \"arguments\": {\"a\": 5}}";
    let function = "<function=add>\n<parameter=a>\n5\n</parameter>\n</function>";
    let own = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END";
    let calls = [CALL, bare, function, own];
    let message = |role: &str, text: &str| {
        json!({"messages": [
            {"role": "user", "content": "Read the page."},
            {"role": "assistant", "content": null, "tool_calls": [
                {"id": "call_1", "type": "function", "function": {"name": "now", "arguments": "{}"}}]},
            {"role": role, "tool_call_id": "c1", "content": text}]})
    };
    for known in calls {
        let quoted = json!({"page": known}).to_string();
        for text in [
            known,
            &*quoted,
            &format!("> {}", known.replace('\n', "\n> ")),
        ] {
            for call in calls {
                for role in ["tool", "user"] {
                    let (recorded, rescued) = text_answer(&message(role, text), call);
                    assert_eq!((&*recorded.content, rescued), (call, 0), "{text}\n{call}");
                }
                // The model or the operator wrote it.
                for role in ["assistant", "system", "developer"] {
                    assert_eq!(text_answer(&message(role, text), call).1, 1);
                }
            }
        }
        // Another value is another call.
        let other = message("tool", &known.replace('5', "6"));
        assert_eq!(text_answer(&other, bare).1, 1, "{known}");
    }
    // A text that mentions neither a format nor JSON is none.
    let plain = message("user", "Please add 5.");
    assert_eq!(text_answer(&plain, CALL).1, 1);
}

#[test]
fn what_the_client_does_not_allow_stays_text() {
    let only = json!({"tool_choice": {"type": "function", "function": {"name": "now"}}});
    let (recorded, rescued) = text_answer(&only, CALL);
    assert_eq!((&*recorded.content, rescued), (CALL, 0));
    let two = format!("{CALL}\n{CALL}");
    let single = json!({"parallel_tool_calls": false});
    let (recorded, rescued) = text_answer(&single, &two);
    assert_eq!(recorded.content, CALL);
    assert_eq!((recorded.calls.len(), rescued), (1, 1));
}

#[test]
fn native_and_rescued_calls_are_numbered_together() {
    let native = json!({"tool_calls": [{"index": 0, "id": "call_abc", "type": "function",
        "function": {"name": "now", "arguments": "{}"}}]});
    let mut deltas = letters(&format!("So:\n{CALL}"));
    deltas.push(native);
    deltas.extend(letters("\nAnd\n"));
    let (recorded, rescued) = answer(&json!({}), &deltas, "tool_calls");
    let names: Vec<&str> = recorded.calls.iter().map(|call| &*call.name).collect();
    assert_eq!((names, rescued), (vec!["add", "now"], 1));
    assert_eq!(recorded.calls[1].id, "call_abc");
    assert_eq!(recorded.content, "So:\n\nAnd\n");
}

#[test]
fn a_truncated_reply_keeps_its_reason() {
    let (recorded, rescued) = answer(&json!({}), &letters(&format!("{CALL}\n")), "length");
    assert_eq!((recorded.calls.len(), rescued), (1, 1));
    assert_eq!(recorded.finish_reason.as_deref(), Some("length"));
    // The line may have gone on.
    for (reason, end) in [("length", "length"), ("stop_sequence", "stop")] {
        let (recorded, rescued) = answer(&json!({}), &letters(CALL), reason);
        assert_eq!((&*recorded.content, rescued), (CALL, 0));
        assert_eq!(recorded.finish_reason.as_deref(), Some(end));
    }
    let stops = json!({"stop": ["END"]});
    let (recorded, rescued) = answer(&stops, &letters(CALL), "stop");
    assert_eq!((&*recorded.content, rescued), (CALL, 0));
}

#[test]
fn held_text_is_sent_before_an_error() {
    let mut asked = asked(ClientApi::Chat, &request(&json!({})));
    let mut answer = stream(&letters("Hm.\n<tool_call>\n{"), "stop");
    let end = answer
        .windows(8)
        .rposition(|at| at == b"data: {\"")
        .unwrap();
    answer.truncate(end);
    let recorded = read_answer(&fed(&mut asked, &answer, usize::MAX), false);
    assert_eq!(recorded.content, "Hm.\n<tool_call>\n{");
    assert!(recorded.error.is_some());
}

/// Pieces of calls and of text.
const PIECES: &[&str] = &[
    CALL,
    "\n",
    "```\n",
    "<tool_call>",
    "</tool_call>",
    "{\"name\": \"now\", \"arguments\": {}}",
    "I add. ",
    "!!!GADGET_START:now\n!!!GADGET_END",
    "<think>",
    " ",
];

#[test]
fn random_texts() {
    let mut random = Random::new(11);
    let mut all = 0;
    for _ in 0..150 {
        let count = random.below(12);
        let pieces = (0..count).map(|_| PIECES[random.below(PIECES.len())]);
        let text: String = pieces.collect();
        let (recorded, rescued) = text_answer(&json!({}), &text);
        assert_eq!(
            (recorded.calls.len() as u64, &recorded.error),
            (rescued, &None)
        );
        if rescued == 0 {
            assert_eq!(recorded.content, text);
        }
        all += rescued;
        // A request that quotes the text makes every call in it an echo.
        let quoted = json!({"messages": [{"role": "user", "content": text}]});
        let (recorded, rescued) = text_answer(&quoted, &text);
        assert_eq!((&*recorded.content, rescued), (&*text, 0));
    }
    assert!(all > 10, "{all}");
}

#[test]
fn a_call_that_the_server_returns_too_stays_text() {
    let own = |name: &str, arguments: &str| json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": name, "arguments": arguments}});
    let text = format!("I add.\n{CALL}\n");
    for size in [text.len(), 3] {
        let pieces = text.as_bytes().chunks(size);
        let pieces =
            pieces.map(|piece| json!({"content": String::from_utf8(piece.to_vec()).unwrap()}));
        let mut deltas: Vec<Value> = pieces.collect();
        deltas.push(json!({"tool_calls": [own("add", "{\"a\":5}")]}));
        let (recorded, rescued) = answer(&json!({}), &deltas, "tool_calls");
        assert_eq!(recorded.readable(), [("add", "{\"a\":5}")]);
        assert_eq!((&*recorded.content, rescued), (&*text, 0));
        // Another tool.
        deltas.pop();
        deltas.push(json!({"tool_calls": [own("now", "{}")]}));
        assert_eq!(answer(&json!({}), &deltas, "stop").1, 1);
    }
    let message =
        json!({"role": "assistant", "content": CALL, "tool_calls": [own("add", "{\"a\":5}")]});
    let mut asked = asked(ClientApi::Chat, &request(&json!({"stream": false})));
    let whole: Value =
        serde_json::from_slice(&fed(&mut asked, &completion(&message, "tool_calls"), 50)).unwrap();
    let message = &whole["choices"][0]["message"];
    assert_eq!(
        (
            message["tool_calls"].as_array().unwrap().len(),
            &message["content"]
        ),
        (1, &json!(CALL))
    );
}

#[test]
fn a_reply_that_is_too_long_ends() {
    let piece = "x".repeat(3 << 20);
    let call = json!({"tool_calls": [{"index": 0, "id": "call_1", "function": {"name": "now", "arguments": piece}}]});
    for delta in [call, json!({"reasoning_content": piece})] {
        let mut asked = asked(ClientApi::Chat, &request(&json!({})));
        fed(&mut asked, &stream(&vec![delta; 23], "stop"), 4 << 20);
        let error = format!("{:?}", asked.end(None));
        assert!(error.contains("exceeds"), "{error}");
    }
}
