//! Replies as responses, streamed and complete.

use plaincall_gateway::translation::AskEnd;
use plaincall_gateway::{GatewayError, ModelSettings};
use serde_json::{Value, json};

use crate::replies::model::Stream;
use crate::responses::model::{complete, play, request, stream, streamed};
use crate::responses::strict_reader::{check_response, read_stream, recorded};

const CALLS: &str =
    "I add.\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n!!!GADGET_START:now\n!!!GADGET_END\n";
const INVALID: &str = "I add.\n!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n";

/// The kinds of the items.
fn kinds(response: &Value) -> Vec<&str> {
    let output = response["output"].as_array().unwrap().iter();
    output.map(|item| item["type"].as_str().unwrap()).collect()
}

#[test]
fn a_streamed_reply_with_calls() {
    let response = streamed(&json!({}), &ModelSettings::default(), &[CALLS], "stop");
    assert_eq!(
        kinds(&response),
        ["message", "function_call", "function_call"]
    );
    assert_eq!(response["status"], "completed");
    assert_eq!(response["model"], "m");
    let output = &response["output"];
    assert_eq!(output[0]["content"][0]["text"], "I add.\n");
    assert_eq!(output[1]["name"], "add");
    assert_eq!(output[1]["arguments"], r#"{"a":5}"#);
    assert_eq!(output[2]["name"], "now");
    assert_eq!(response["usage"]["input_tokens"], 10);
}

#[test]
fn a_complete_response_equals_the_last_of_the_stream() {
    let texts = [
        CALLS,
        "Hi.\n",
        "",
        "<think>Hm.</think>So.",
        "<think>Hm.</think>\n!!!GADGET_START:now\n!!!GADGET_END\nThen.",
        "!!!GADGET_START:now\n!!!GADGET_END\nAnd\n!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n",
        "!!!GADGET_START:now\n!!!GADGET_END\n!!!GADGET_START:write\n!!!ARG:path\na",
    ];
    for text in texts {
        for reason in ["stop", "length", "content_filter"] {
            let settings = ModelSettings::default();
            let mut streamed = streamed(&json!({}), &settings, &[text], reason);
            let mut complete = complete(&json!({}), &settings, &[text], reason).unwrap();
            check_response(&complete);
            // The usage of a stream that ends before a call is unknown.
            for response in [&mut streamed, &mut complete] {
                assert!(response["usage"]["total_tokens"].is_u64());
                response.as_object_mut().unwrap().remove("usage");
            }
            assert_eq!(complete, streamed, "{text:?}");
        }
    }
}

/// The texts that follow a call come behind it, and its id reports the invalid call.
#[test]
fn a_text_between_two_calls() {
    let text = "!!!GADGET_START:now\n!!!GADGET_END\nAnd\n!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n";
    let response = streamed(&json!({}), &ModelSettings::default(), &[text], "stop");
    assert_eq!(kinds(&response), ["function_call", "message"]);
    let arguments = response["output"][0]["arguments"].as_str().unwrap();
    assert_eq!(arguments, "{}");

    // The client sends it back, and the model learns about its invalid call.
    let call = &response["output"][0];
    let output =
        json!({"type": "function_call_output", "call_id": call["call_id"], "output": "done"});
    let input = json!([{"role": "user", "content": "Do it."}, call, response["output"][1], output]);
    let sent = crate::responses::model::messages(&request(&json!({"input": input})));
    let (role, last) = sent.last().unwrap();
    assert_eq!(role, "user");
    assert!(last.contains("which had invalid arguments"), "{last}");
}

#[test]
fn truncated_replies_are_incomplete() {
    for (reason, expected) in [
        ("length", "max_output_tokens"),
        ("content_filter", "content_filter"),
    ] {
        let response = streamed(&json!({}), &ModelSettings::default(), &["I am"], reason);
        assert_eq!(response["status"], "incomplete");
        assert_eq!(response["incomplete_details"]["reason"], expected);
        assert_eq!(response["output"][0]["status"], "incomplete");
    }
}

#[test]
fn an_invalid_call_is_repaired() {
    let settings = ModelSettings::default();
    let response = streamed(&json!({}), &settings, &[INVALID, CALLS], "stop");
    assert_eq!(
        kinds(&response),
        ["message", "function_call", "function_call"]
    );
    assert_eq!(
        response["usage"]["input_tokens"], 20,
        "the first round was cancelled, and is estimated"
    );
    let response = complete(&json!({}), &settings, &[INVALID, CALLS], "stop").unwrap();
    assert_eq!(response["usage"]["input_tokens"], 20);

    let failed = streamed(&json!({}), &settings, &[INVALID; 3], "stop");
    assert_eq!(failed["status"], "failed");
    assert_eq!(failed["error"]["code"], "invalid_tool_call");
    let error = complete(&json!({}), &settings, &[INVALID; 3], "stop").unwrap_err();
    assert_eq!(error.status, 502);
}

#[test]
fn errors_of_the_model_server() {
    let settings = ModelSettings::default();
    let body = request(&json!({"stream": true}));
    let broken = GatewayError::upstream("it broke");
    // Before the stream begins, the host responds with the status; the events are complete nevertheless.
    for begin in [Vec::new(), Stream::new().texts(["So", " I"]).0] {
        let has_begun = !begin.is_empty();
        let outcome = play(&body, &settings, &[begin], usize::MAX, Some(&broken));
        assert_eq!(outcome.end, AskEnd::Refused(broken.clone()));
        let response = read_stream(&outcome.bytes);
        assert_eq!(response["status"], "failed");
        assert_eq!(response["error"]["message"], "it broke");
        assert_eq!(response["error"]["code"], "upstream_error");
        let texts = recorded(&response).content;
        assert_eq!(texts, if has_begun { "So I" } else { "" });
    }
    let inside = Stream::new()
        .texts(["So"])
        .data(r#"{"error":{"message":"try later","type":"overloaded","code":"slow"}}"#);
    let outcome = play(&body, &settings, &[inside.0], 1, None);
    let response = read_stream(&outcome.bytes);
    assert_eq!(
        response["error"],
        json!({"code": "slow", "message": "try later"})
    );
}

#[test]
fn reasoning_and_refusals() {
    let stream = Stream::new()
        .thought("reasoning", "Hm")
        .thought("reasoning", ".")
        .texts(["No"])
        .thought("refusal", " way")
        .finish("stop")
        .done();
    let body = request(&json!({"stream": true}));
    let outcome = play(&body, &ModelSettings::default(), &[stream.0], 7, None);
    let response = read_stream(&outcome.bytes);
    assert_eq!(kinds(&response), ["reasoning", "message"]);
    let output = &response["output"];
    assert_eq!(
        output[0]["content"],
        json!([{"type": "reasoning_text", "text": "Hm."}])
    );
    assert_eq!(
        output[1]["content"][1],
        json!({"type": "refusal", "refusal": " way"})
    );
}

#[test]
fn requests_without_tools() {
    let body = json!({"model": "asked", "input": "Hi.", "stream": true});
    let text = "No !!!GADGET_END here.";
    let outcome = play(
        &body,
        &ModelSettings::default(),
        &[stream(text, "stop")],
        3,
        None,
    );
    assert_eq!(recorded(&read_stream(&outcome.bytes)).content, text);
}
