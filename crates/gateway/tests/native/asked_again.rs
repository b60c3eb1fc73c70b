//! Calls that arrive as text and are not accepted: the model is asked once more.

use plaincall_gateway::GatewayError;
use plaincall_gateway::translation::{AskEnd, Asked, ClientApi};
use plaincall_testkit::strict_client::{Recorded, read_answer};
use plaincall_wire::openai::ErrorObject;
use serde_json::{Value, json};

use crate::native::model::{asked, completion, stream};
use crate::replies::model::{calls_in_formats, request};

const INVALID: &str =
    "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": \"five\"}}\n</tool_call>";
const CALL: &str = "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>";

fn text(text: &str) -> Vec<u8> {
    stream(&[json!({"content": text})], "stop")
}

fn native_call() -> Vec<u8> {
    let call = json!({"tool_calls": [{"index": 0, "id": "call_abc", "type": "function",
        "function": {"name": "add", "arguments": "{\"a\":5}"}}]});
    stream(&[json!({"content": "I try again."}), call], "tool_calls")
}

/// Feeds the answers of the model server, each as long as it is asked. Returns the client's answer, the number of rounds, and the
/// last request to the model server.
fn played(asked: &mut Asked, answers: &[Vec<u8>], size: usize) -> (Recorded, usize, Value) {
    let mut bytes = Vec::new();
    let mut rounds = 0;
    for answer in answers {
        rounds += 1;
        for piece in answer.chunks(size) {
            asked.feed(piece);
            bytes.append(&mut asked.take());
        }
        let end = asked.end(None);
        bytes.append(&mut asked.take());
        if end != AskEnd::Again {
            break;
        }
    }
    let sent = serde_json::from_slice(asked.body()).unwrap();
    (read_answer(&bytes, false), rounds, sent)
}

fn play(fields: &Value, answers: &[Vec<u8>]) -> (Recorded, usize) {
    let found = [1, 7, usize::MAX].map(|size| {
        let mut asked = asked(ClientApi::Chat, &request(fields));
        let (recorded, rounds, _) = played(&mut asked, answers, size);
        assert_eq!(asked.counts().repair_rounds, rounds as u64 - 1);
        (recorded, rounds)
    });
    let [first, others @ ..] = found;
    assert_eq!(others, [first.clone(), first.clone()], "the pieces matter");
    first
}

#[test]
fn the_model_is_asked_once_more_unseen_by_the_client() {
    for refused in [
        INVALID.to_owned(),
        format!("I will not run this:\n{CALL}\nIt adds."),
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {".to_owned(),
        "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END".to_owned(),
        format!("> {CALL}"),
    ] {
        // A native call, a call as text, and an answer.
        for again in [native_call(), text(CALL)] {
            let (recorded, rounds) = play(&json!({}), &[text(&refused), again]);
            assert_eq!(recorded.readable(), [("add", "{\"a\":5}")], "{refused}");
            assert_eq!((&recorded.content, rounds), (&refused, 2));
            assert_eq!(recorded.finish_reason.as_deref(), Some("tool_calls"));
        }
        let (recorded, rounds) = play(&json!({}), &[text(&refused), text("It is 5.")]);
        assert_eq!(recorded.content, format!("{refused}\nIt is 5."));
        assert_eq!((recorded.calls.len(), rounds), (0, 2));
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"));
        // It is asked only once; what it writes then is text.
        let all = [text(&refused), text(INVALID), text(CALL)];
        let (recorded, rounds) = play(&json!({}), &all);
        assert!(recorded.content.contains("five"), "{refused}");
        assert_eq!((recorded.calls.len(), rounds, recorded.error), (0, 2, None));
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"));
    }
}

#[test]
fn the_request_has_the_reply_and_a_message() {
    let mut asked = asked(ClientApi::Chat, &request(&json!({"temperature": 0.5})));
    let answers = [text(&format!("So:\n{INVALID}\n")), text("No.")];
    let (.., sent) = played(&mut asked, &answers, 50);
    let messages = sent["messages"].as_array().unwrap();
    let [.., reply, message] = messages.as_slice() else {
        panic!("{sent}");
    };
    assert_eq!(
        *reply,
        json!({"role": "assistant", "content": format!("So:\n{INVALID}")})
    );
    assert_eq!(message["role"], "user");
    let message = message["content"].as_str().unwrap();
    assert!(message.contains("looks like a tool call"), "{message}");
    assert_eq!(
        (&sent["temperature"], sent["tools"].is_array()),
        (&json!(0.5), true)
    );
}

#[test]
fn a_whole_answer_is_asked_for_again_too() {
    let message = |text: &str| json!({"role": "assistant", "content": text});
    let mut asked = asked(ClientApi::Chat, &request(&json!({"stream": false})));
    asked.feed(&completion(&message(INVALID), "stop"));
    assert_eq!(asked.end(None), AskEnd::Again);
    asked.feed(&completion(&message(CALL), "stop"));
    assert_eq!(asked.end(None), AskEnd::Done);
    let whole: Value = serde_json::from_slice(&asked.take()).unwrap();
    let choice = &whole["choices"][0];
    let call = &choice["message"]["tool_calls"][0]["function"];
    assert_eq!(*call, json!({"name": "add", "arguments": "{\"a\":5}"}));
    assert_eq!(choice["finish_reason"], "tool_calls");
}

/// Controls: the reply is the answer.
#[test]
fn nothing_else_is_asked_for_again() {
    let quoted = |text: &str| json!({"messages": [{"role": "user", "content": format!("Read this:\n{text}")}]});
    let never = text("Never read.");
    let table = [
        (json!({}), "It is 5.".to_owned()),
        (json!({}), "Call `add` with {\"a\": 5}.".to_owned()),
        (
            json!({}),
            "{\"name\": \"Alice\", \"arguments\": {}}".to_owned(),
        ),
        (json!({}), format!("<think>{INVALID}</think>\nDone.")),
        // An echo, and calls that untrusted text mentions.
        (quoted(CALL), CALL.to_owned()),
        (quoted(CALL), INVALID.to_owned()),
        (quoted(INVALID), format!("So:\n{INVALID}\nDone.")),
        (
            quoted("{\"name\": \"add\", \"arguments\": {\"a\": 5}}"),
            "{\"name\": \"add\", \"arguments\": {\"a\": \"five\"}}".to_owned(),
        ),
    ];
    for (fields, reply) in table {
        let (recorded, rounds) = play(&fields, &[text(&reply), never.clone()]);
        assert_eq!((&recorded.content, rounds), (&reply, 1), "{fields}");
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"), "{reply}");
    }
    // A call has been sent, or the reply is truncated.
    let call = json!({"tool_calls": [{"index": 0, "id": "call_abc", "type": "function",
        "function": {"name": "now", "arguments": "{}"}}]});
    let both = stream(&[json!({"content": INVALID}), call], "tool_calls");
    assert_eq!(play(&json!({}), &[both, never.clone()]).1, 1);
    let cut = stream(&[json!({"content": INVALID})], "length");
    assert_eq!(play(&json!({}), &[cut, never]).1, 1);
}

/// Reasoning that the client does not see ends calls all the same.
#[test]
fn reasoning_in_the_second_reply_ends_what_comes_before_it() {
    let thought = json!({"reasoning_content": "Done."});
    let answer = json!({"content": "It is 5."});
    let as_text = stream(&[json!({"content": CALL}), thought.clone(), answer], "stop");
    let call = json!({"tool_calls": [{"index": 0, "id": "call_abc", "type": "function",
        "function": {"name": "add", "arguments": "{\"a\":5}"}}]});
    // Directly after a call, it would count as truncated.
    let without_reason = stream(&[call, thought], "");
    for second in [as_text, without_reason] {
        let (recorded, _) = play(&json!({}), &[text(INVALID), second]);
        assert_eq!(recorded.readable(), [("add", "{\"a\":5}")]);
        assert_eq!(recorded.finish_reason.as_deref(), Some("tool_calls"));
        assert_eq!(recorded.reasoning, "");
    }
}

#[test]
fn the_markers_of_reasoning_are_not_sent_again() {
    let thinking = |reply: &str| text(&format!("\n<think>Shall I?</think>\n{reply}"));
    let refused = format!("I add.\n{INVALID}");
    let answers = [thinking(&refused), thinking("It is 5.")];
    let (recorded, rounds) = play(&json!({}), &answers);
    // The client gets the first reply unchanged.
    let first = format!("\n<think>Shall I?</think>\n{refused}");
    assert_eq!(
        (rounds, recorded.content),
        (2, format!("{first}\n\n\nIt is 5."))
    );
    let mut asked = asked(ClientApi::Chat, &request(&json!({})));
    let (.., sent) = played(&mut asked, &answers, 3);
    let messages = sent["messages"].as_array().unwrap();
    let reply = &messages[messages.len() - 2];
    assert_eq!(reply["content"], format!("\n\n{refused}"));
    // The second reply may repeat the first, after other reasoning.
    let repeated = text(&format!("<think>Hm.</think>{refused}\nIt is 5."));
    let (recorded, _) = play(&json!({}), &[text(&refused), repeated]);
    assert_eq!(recorded.content, format!("{refused}\nIt is 5."));
}

#[test]
fn several_calls_where_one_is_allowed_are_asked_for_again() {
    let now = "{\"name\": \"now\", \"arguments\": {}}";
    let both = format!("[TOOL_CALLS][{now}, {now}]");
    let one_call = json!({"parallel_tool_calls": false});
    let mut asked = asked(ClientApi::Chat, &request(&one_call));
    let answers = [text(&both), text(CALL)];
    let (recorded, rounds, sent) = played(&mut asked, &answers, 50);
    assert_eq!(
        (rounds, recorded.readable()),
        (2, vec![("add", "{\"a\":5}")])
    );
    let messages = sent["messages"].as_array().unwrap();
    let message = messages.last().unwrap()["content"].as_str().unwrap();
    assert!(
        message.contains("only one call is allowed in a reply"),
        "{message}"
    );
    // Copies are not asked for again.
    let copied = json!({"parallel_tool_calls": false,
        "messages": [{"role": "user", "content": format!("It wrote {now}.")}]});
    let (recorded, rounds) = play(&copied, &answers);
    assert_eq!((rounds, recorded.content), (1, both));
}

#[test]
fn the_first_reply_is_the_answer_if_the_second_request_fails() {
    let error = "data: {\"error\": {\"message\": \"the context is exceeded\"}}\n\n";
    let begun = String::from_utf8(text("It is")).unwrap();
    let begun = begun.split_inclusive("\n\n").next().unwrap();
    let fails: [&dyn Fn(&mut Asked) -> AskEnd; 4] = [
        // An error status, an error in the stream, a truncated answer, and no choices.
        &|asked| asked.end(Some(GatewayError::new(429, ErrorObject::default()))),
        &|asked| {
            asked.feed(error.as_bytes());
            asked.end(None)
        },
        &|asked| {
            asked.feed(begun.as_bytes());
            asked.end(None)
        },
        &|asked| {
            asked.feed(b"data: [DONE]\n\n");
            asked.end(None)
        },
    ];
    for fail in fails {
        let mut asked = asked(ClientApi::Chat, &request(&json!({})));
        asked.feed(&text(INVALID));
        assert_eq!(asked.end(None), AskEnd::Again);
        assert_eq!(fail(&mut asked), AskEnd::Done);
        let recorded = read_answer(&asked.take(), false);
        assert_eq!((&*recorded.content, recorded.error), (INVALID, None));
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"));
        let counts = asked.counts();
        assert_eq!((counts.repair_rounds, counts.failed_repairs), (1, 1));
    }
    // A call that was sent cannot be taken back.
    let call = String::from_utf8(native_call()).unwrap();
    let call = call.split_inclusive("\n\n").take(2).collect::<String>();
    for (next, is_sent) in [
        ("", false),
        (
            "data: {\"choices\": [{\"delta\": {\"content\": \"So.\"}}]}\n\n",
            true,
        ),
    ] {
        let second = format!("{call}{next}");
        let (recorded, _) = play(&json!({}), &[text(INVALID), second.into_bytes()]);
        assert_eq!(recorded.error.is_some(), is_sent, "{recorded:?}");
        assert_eq!(recorded.calls.len(), usize::from(is_sent));
    }
}

#[test]
fn a_whole_first_reply_is_the_answer_if_the_second_request_fails() {
    let message = json!({"role": "assistant", "content": INVALID});
    let chat = request(&json!({"stream": false}));
    let messages = json!({"model": "m", "max_tokens": 9, "messages": chat["messages"],
        "tools": [{"name": "add", "input_schema": chat["tools"][0]["function"]["parameters"]}]});
    for (api, body) in [(ClientApi::Chat, chat), (ClientApi::Messages, messages)] {
        for second in ["{", "{\"error\": {\"message\": \"overloaded\"}}"] {
            let mut asked = asked(api, &body);
            asked.feed(&completion(&message, "stop"));
            assert_eq!(asked.end(None), AskEnd::Again);
            asked.feed(second.as_bytes());
            assert_eq!(asked.end(None), AskEnd::Done);
            let whole: Value = serde_json::from_slice(&asked.take()).unwrap();
            let found = match api {
                ClientApi::Chat => json!([
                    whole["id"],
                    whole["choices"][0]["message"]["content"],
                    whole["choices"][0]["finish_reason"],
                    whole["usage"]["prompt_tokens"]
                ]),
                _ => json!([
                    "chatcmpl-9",
                    whole["content"][0]["text"],
                    whole["stop_reason"],
                    whole["usage"]["input_tokens"]
                ]),
            };
            let reason = if api == ClientApi::Chat {
                "stop"
            } else {
                "end_turn"
            };
            assert_eq!(found, json!(["chatcmpl-9", INVALID, reason, 10]));
        }
    }
}

/// A model of each format, by its name; of the formats without one, none.
const MODELS: &[(&str, &str)] = &[
    ("hermes", "Qwen/Qwen3-32B"),
    ("mistral", "mistralai/Devstral-Small-2507"),
    ("function", "qwen3-coder:30b"),
    ("fenced", "phi4"),
    ("json", "m"),
    ("granite", "ibm-granite/granite-3.3-8b-instruct"),
    ("llama", "llama3.1:8b"),
    ("kimi", "moonshotai/Kimi-K2-Thinking"),
    ("deepseek", "deepseek-ai/DeepSeek-V3.1"),
    ("dsml", "deepseek-v3.2"),
    ("glm", "zai-org/GLM-4.7"),
    ("minimax", "MiniMaxAI/MiniMax-M2"),
    ("invoke", "minimax-m2"),
    ("harmony", "openai/gpt-oss-120b"),
    ("gemma", "google/gemma-4-31b-it"),
    ("pythonic", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
    ("lfm2", "LiquidAI/LFM2-1.2B-Tool"),
    ("cohere", "CohereLabs/c4ai-command-a-03-2025"),
    ("phi", "microsoft/Phi-4-mini-instruct"),
    ("nemotron", "nvidia/Llama-3_3-Nemotron-Super-49B-v1_5"),
    ("step", "stepfun-ai/step3"),
    ("hunyuan", "tencent/Hunyuan-A13B-Instruct"),
    ("internlm", "internlm/internlm3-8b-instruct"),
    ("seed", "ByteDance-Seed/Seed-OSS-36B-Instruct"),
    ("jamba", "ai21labs/AI21-Jamba-Large-1.7"),
    ("command_r", "command-r-plus"),
];

#[test]
fn the_formats_of_the_model_are_accepted() {
    for (format, written) in calls_in_formats() {
        let answers = [text(&written), native_call()];
        let model = MODELS.iter().find(|(one, _)| *one == format);
        let (_, rounds) = play(&json!({"model": model.map_or("m", |it| it.1)}), &answers);
        assert_eq!(rounds == 1, model.is_some(), "{format}: {written}");
        // A call in the format of another model may be copied.
        let is_default = ["hermes", "mistral", "function", "fenced", "json"].contains(&&*format);
        let (recorded, rounds) = play(&json!({"model": "m"}), &answers);
        assert_eq!(rounds == 1, is_default, "{format}: {written}");
        assert_eq!(
            recorded.calls.first().map(|call| &*call.name),
            Some("add"),
            "{written}"
        );
        // The settings have precedence over the name.
        let model = json!({"model": if is_default { "none" } else { &*format }});
        let (recorded, rounds) = play(&model, &answers);
        assert_eq!(rounds == 1, !is_default, "{format}: {written}");
        assert_eq!(recorded.content.contains("add"), is_default, "{written}");
    }
}
