//! Invalid calls come back from clients of each API, and the model gets the gateway's message about them.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

use plaincall_gateway::ModelSettings;
use plaincall_gateway::translation::ClientApi;
use serde_json::{Value, json};

use crate::messages::model::ask;
use crate::replies::model::streaming;
use crate::{messages, replies, responses};

const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";
const ADD: &str = "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n";
/// The client's own text, which the model must not see.
const CLIENT_ERROR: &str = "check your backslashes";
const REASON: &str = "This call was not run: invalid arguments: `a`: expected an integer, found `five`. If you still need it, write it again, corrected.";

/// A call as the client got it: its id, the name, and the text of its arguments.
#[derive(Clone, Debug)]
struct Call {
    id: String,
    name: String,
    arguments: String,
    is_custom: bool,
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}

/// The calls of the reply to a request in this API.
fn calls(api: ClientApi, settings: &ModelSettings, is_streamed: bool, reply: &str) -> Vec<Call> {
    let fields = json!({});
    match api {
        ClientApi::Messages => {
            let message = if is_streamed {
                let rounds = [messages::model::round(reply, "stop")];
                messages::model::streamed(&fields, settings, &rounds)
            } else {
                messages::model::complete(&fields, settings, &[reply], "stop")
            };
            let blocks = message.blocks.into_iter();
            let calls = blocks.filter(|block| block["type"] == "tool_use");
            calls
                .map(|call| Call {
                    id: text(&call["id"]),
                    name: text(&call["name"]),
                    arguments: text(&call["input"]),
                    is_custom: false,
                })
                .collect()
        }
        ClientApi::Responses => {
            let mut tools = responses::model::tools();
            let custom = json!({"type": "custom", "name": "patch"});
            tools.as_array_mut().unwrap().push(custom);
            // A custom tool is strict, so no arguments are streamed.
            let fields = match settings.arguments {
                plaincall_gateway::ArgumentMode::Checked => json!({"tools": tools}),
                plaincall_gateway::ArgumentMode::Stream => fields,
            };
            let response = if is_streamed {
                responses::model::streamed(&fields, settings, &[reply], "stop")
            } else {
                responses::model::complete(&fields, settings, &[reply], "stop").unwrap()
            };
            let items = response["output"].as_array().unwrap().iter();
            let calls = items.filter(|item| item.get("call_id").is_some());
            calls
                .map(|call| Call {
                    id: text(&call["call_id"]),
                    name: text(&call["name"]),
                    arguments: text(call.get("arguments").or(call.get("input")).unwrap()),
                    is_custom: call["type"] == "custom_tool_call",
                })
                .collect()
        }
        _ => {
            let plan = replies::model::plan(&fields, settings);
            let recorded = replies::model::recorded(&plan, &[reply], "stop").recorded;
            let calls = recorded.calls.into_iter();
            calls
                .map(|call| Call {
                    id: call.id,
                    name: call.name,
                    arguments: call.arguments,
                    is_custom: false,
                })
                .collect()
        }
    }
}

/// The last message to the model, if the client sends these calls back with these results.
fn next(api: ClientApi, calls: &[Call], result: &str) -> Value {
    let turn: Vec<Value> = calls.iter().map(|call| turn(api, call)).collect();
    let results = calls.iter().map(|call| match api {
        ClientApi::Messages => json!({"type": "tool_result", "tool_use_id": call.id,
            "content": result, "is_error": true}),
        ClientApi::Responses if call.is_custom => {
            json!({"type": "custom_tool_call_output", "call_id": call.id, "output": result})
        }
        ClientApi::Responses => {
            json!({"type": "function_call_output", "call_id": call.id, "output": result})
        }
        _ => json!({"role": "tool", "tool_call_id": call.id, "content": result}),
    });
    let results: Vec<Value> = results.collect();
    let user = json!({"role": "user", "content": "Do it."});
    let body = match api {
        ClientApi::Messages => messages::model::request(&json!({"messages": [
            user, {"role": "assistant", "content": turn}, {"role": "user", "content": results}]})),
        ClientApi::Responses => {
            let input = [vec![user], turn, results].concat();
            responses::model::request(&json!({"input": input}))
        }
        _ => {
            let turn = json!({"role": "assistant", "content": null, "tool_calls": turn});
            let messages = [vec![user, turn], results].concat();
            replies::model::request(&json!({"messages": messages}))
        }
    };
    let asked = ask(api.path(), &body, &ModelSettings::default()).unwrap();
    let sent: Value = serde_json::from_slice(asked.body()).unwrap();
    let messages = sent["messages"].as_array().unwrap();
    json!([
        messages[messages.len() - 2]["content"],
        messages[messages.len() - 1]["content"]
    ])
}

fn turn(api: ClientApi, call: &Call) -> Value {
    match api {
        ClientApi::Messages => {
            // Clients parse the input and write it again.
            let input: Value = serde_json::from_str(&call.arguments)
                .unwrap_or_else(|_| json!({"__unparsedToolInput": call.arguments}));
            json!({"type": "tool_use", "id": call.id, "name": call.name, "input": input})
        }
        ClientApi::Responses if call.is_custom => json!({"type": "custom_tool_call",
            "call_id": call.id, "name": call.name, "input": call.arguments}),
        ClientApi::Responses => json!({"type": "function_call",
            "call_id": call.id, "name": call.name, "arguments": call.arguments}),
        _ => json!({"id": call.id, "type": "function",
            "function": {"name": call.name, "arguments": call.arguments}}),
    }
}

/// A text between both calls changes nothing.
#[test]
fn an_invalid_call_after_a_valid_one() {
    let settings = ModelSettings::default();
    for api in [ClientApi::Chat, ClientApi::Messages, ClientApi::Responses] {
        for is_streamed in [true, false] {
            for between in ["", "And then.\n"] {
                let reply = format!("{NOW}{between}{ADD}{NOW}");
                let calls = calls(api, &settings, is_streamed, &reply);
                assert_eq!(calls.len(), 1, "{calls:?}");
                let sent = next(api, &calls, "done");
                let last = sent[1].as_str().unwrap();
                assert!(
                    last.contains("before its next call, which had invalid arguments."),
                    "{api:?}: {last}"
                );
                // Without the invalid call, there is nothing to report.
                let calls = self::calls(api, &settings, is_streamed, &format!("{NOW}{between}"));
                let sent = next(api, &calls, "done");
                assert!(sent[1].as_str().unwrap().ends_with("Output: done\n"));
            }
        }
    }
}

#[test]
fn an_invalid_call_after_one_of_a_custom_tool() {
    let patch = "!!!GADGET_START:patch\n!!!ARG:input\n*** Begin\n!!!GADGET_END\n";
    let settings = ModelSettings::default();
    for is_streamed in [true, false] {
        let reply = format!("{patch}{ADD}");
        let calls = calls(ClientApi::Responses, &settings, is_streamed, &reply);
        assert!(calls[0].is_custom && calls[0].arguments == "*** Begin");
        let sent = next(ClientApi::Responses, &calls, "done");
        let last = sent[1].as_str().unwrap();
        assert!(last.contains("which had invalid arguments."), "{last}");
    }
}

/// A client sends an unreadable call back under its own name, in a field or a text of its own.
#[test]
fn unreadable_calls_come_back_under_any_name() {
    for api in [ClientApi::Chat, ClientApi::Messages, ClientApi::Responses] {
        let calls = calls(api, &streaming(), true, &format!("{NOW}{ADD}"));
        assert_eq!(calls.len(), 2, "{calls:?}");
        let [now, add] = &calls[..] else { panic!() };
        assert!(serde_json::from_str::<Value>(&add.arguments).is_err());
        let quoted = format!(
            "Invalid input for tool add: JSON parsing failed: Text: {}.\nError message: Bad",
            add.arguments
        );
        let renamed = Call {
            name: "invalid".to_owned(),
            arguments: json!({"tool": "add", "error": quoted}).to_string(),
            ..add.clone()
        };
        let mut raw = add.clone();
        raw.is_custom = api == ClientApi::Responses;
        for call in [add.clone(), renamed, raw] {
            let sent = next(api, &[now.clone(), call], CLIENT_ERROR);
            let (turn, last) = (sent[0].as_str().unwrap(), sent[1].as_str().unwrap());
            assert!(
                turn.contains(r#"{"name":"add","arguments":"{\"a\":]"}"#),
                "{turn}"
            );
            assert!(
                !turn.contains("invalid") && !turn.contains("Not run"),
                "{turn}"
            );
            assert!(last.contains(REASON), "{api:?}: {last}");
            // Only the result of the other call is the client's.
            assert_eq!(last.matches(CLIENT_ERROR).count(), 1, "{last}");
            assert!(
                last.contains("Result 2 of 2: tool add, status error"),
                "{last}"
            );
        }
        // Another id, or a changed reason: it is a text like any other.
        let mut other = add.clone();
        other.id.push('x');
        let mut changed = add.clone();
        changed.arguments = changed.arguments.replace("five", "six");
        for call in [other, changed] {
            let sent = next(api, &[call], CLIENT_ERROR);
            let last = sent[1].as_str().unwrap();
            assert!(
                last.contains(CLIENT_ERROR) && !last.contains("This call was not"),
                "{last}"
            );
        }
    }
}
