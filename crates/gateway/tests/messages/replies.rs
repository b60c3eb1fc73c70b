//! Replies, streamed and complete.

use plaincall_gateway::ModelSettings;
use serde_json::{Value, json};

use crate::messages::model::{complete, round, streamed};
use crate::messages::strict::Message;
use crate::replies::model::Stream;
use crate::replies::table::{ADD, WRONG};

const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";

/// A line for a message: its blocks and its end.
fn line(message: &Message) -> String {
    let mut parts: Vec<String> = Vec::new();
    for block in &message.blocks {
        parts.push(match block["type"].as_str().unwrap() {
            "tool_use" => format!(
                "{}({})",
                block["name"].as_str().unwrap(),
                block["input"].as_str().unwrap().trim_end()
            ),
            kind => format!("{kind} {}", block[kind]),
        });
    }
    parts.extend(message.stop_reason.clone());
    parts.extend(
        message
            .error
            .as_ref()
            .map(|(kind, text)| format!("{kind}: {text}")),
    );
    parts.join(" | ")
}

/// Checks the same reply, streamed and complete.
fn check(fields: &Value, text: &str, reason: &str, expected: &str) {
    let settings = ModelSettings::default();
    let rounds = vec![round(text, reason); 4];
    assert_eq!(
        line(&streamed(fields, &settings, &rounds)),
        expected,
        "{text:?}"
    );
    assert_eq!(
        line(&complete(fields, &settings, &[text; 4], reason)),
        expected,
        "{text:?}"
    );
}

#[test]
fn texts_calls_and_stop_reasons() {
    let none = json!({});
    check(&none, "Hi.", "stop", r#"text "Hi." | end_turn"#);
    check(&none, "Hi.", "length", r#"text "Hi." | max_tokens"#);
    check(&none, "Hi.", "content_filter", r#"text "Hi." | refusal"#);
    check(&none, "", "stop", "end_turn");
    check(&none, NOW, "stop", "now({}) | tool_use");
    let two = format!("I add.\n{ADD}{NOW}");
    check(
        &none,
        &two,
        "stop",
        r#"text "I add.\n" | add({"a":5}) | now({}) | tool_use"#,
    );
    let cut = format!("{ADD}!!!GADGET_START:write\n!!!ARG:path\na.tx");
    check(&none, &cut, "length", r#"add({"a":5}) | max_tokens"#);
    let after = format!("{NOW}So.");
    check(
        &none,
        &after,
        "stop",
        r#"now({}) | text "\nSo." | tool_use"#,
    );
    let without_tools = json!({"tools": null});
    check(&without_tools, "Hi.", "stop", r#"text "Hi." | end_turn"#);
    check(
        &without_tools,
        ADD,
        "stop",
        &format!("text {} | end_turn", json!(ADD)),
    );
    let single = json!({"tool_choice": {"type": "auto", "disable_parallel_tool_use": true}});
    check(
        &single,
        &two,
        "stop",
        r#"text "I add.\n" | add({"a":5}) | tool_use"#,
    );
    let none = json!({"tool_choice": {"type": "none"}});
    check(&none, "Hi.", "stop", r#"text "Hi." | end_turn"#);
}

#[test]
fn invalid_calls_are_repaired() {
    let settings = ModelSettings::default();
    let expected = r#"text "I add.\n" | add({"a":5}) | tool_use"#;
    let wrong = format!("I add.\n{WRONG}");
    let rounds = [round(&wrong, "stop"), round(ADD, "stop")];
    assert_eq!(line(&streamed(&json!({}), &settings, &rounds)), expected);
    assert_eq!(
        line(&complete(&json!({}), &settings, &[&wrong, ADD], "stop")),
        expected
    );
    // After all rounds, it is an error of the API: in the stream, or before it.
    let words = "the model wrote an invalid call, even after 2 repair rounds";
    let failed = streamed(&json!({}), &settings, &vec![round(&wrong, "stop"); 3]);
    assert_eq!(
        failed.error,
        Some(("api_error".to_owned(), words.to_owned()))
    );
    assert_eq!(failed.text("text"), "I add.\n");
    let failed = complete(&json!({}), &settings, &[WRONG; 3], "stop");
    assert_eq!(
        failed.error,
        Some(("api_error".to_owned(), words.to_owned()))
    );
    // After a valid call, the reply ends before the invalid one.
    check(
        &json!({}),
        &format!("{NOW}{WRONG}{NOW}"),
        "stop",
        "now({}) | tool_use",
    );
}

#[test]
fn errors_of_the_model_server_in_a_stream() {
    let settings = ModelSettings::default();
    for data in [
        r#"{"error":{"message":"full"}}"#,
        r#"{"object":"error","message":"full"}"#,
    ] {
        let stream = Stream::new().texts(["Hi."]).data(data);
        let message = streamed(&json!({}), &settings, &[stream]);
        assert_eq!(line(&message), r#"text "Hi." | api_error: full"#);
    }
    let broken = streamed(&json!({}), &settings, &[Stream::new().texts(["Hi."])]);
    assert_eq!(
        line(&broken),
        r#"text "Hi." | api_error: the model server's answer is incomplete"#
    );
}

#[test]
fn thinking_is_sent_to_clients_that_enable_it() {
    let stream = || {
        let stream = Stream::new()
            .thought("reasoning_content", "Hm.")
            .texts(["Well. "]);
        let stream = stream
            .thought("reasoning_content", "Or?")
            .texts(["Yes.\n", NOW]);
        stream.finish("stop").done()
    };
    let settings = ModelSettings::default();
    let sent = |thinking: Value| {
        line(&streamed(
            &json!({"thinking": thinking}),
            &settings,
            &[stream()],
        ))
    };
    let hidden = r#"text "Well. Yes.\n" | now({}) | tool_use"#;
    let shown =
        r#"thinking "Hm." | text "Well. " | thinking "Or?" | text "Yes.\n" | now({}) | tool_use"#;
    for thinking in [
        json!({"type": "enabled", "budget_tokens": 1024}),
        json!({"type": "adaptive"}),
    ] {
        assert_eq!(sent(thinking), shown);
    }
    for thinking in [
        json!(null),
        json!({"type": "disabled"}),
        json!({"type": "adaptive", "display": "omitted"}),
    ] {
        assert_eq!(sent(thinking), hidden);
    }
    let text = "<think>Hm.</think>Yes.";
    let fields = json!({"thinking": {"type": "adaptive"}});
    check(
        &fields,
        text,
        "stop",
        r#"thinking "Hm." | text "Yes." | end_turn"#,
    );
}

#[test]
fn usage_and_stop_sequences() {
    let settings = ModelSettings::default();
    let usage = json!({"input_tokens": 2, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 10, "output_tokens": 3});
    let message = complete(&json!({}), &settings, &["Hi."], "stop");
    assert_eq!((&message.usage, &*message.model), (&usage, "real"));
    let stream = Stream::new().texts(["Hi."]).finish("stop").usage(12).done();
    let message = streamed(&json!({}), &settings, &[stream]);
    assert_eq!(message.usage["input_tokens"], 12);
    assert_eq!(message.usage["output_tokens"], 1);
    // vLLM names the sequence beside the finish reason.
    let stopped = |stop: &str| {
        let choice = json!({"index": 0, "delta": {"content": "Hi"}, "finish_reason": "stop", "stop_reason": stop});
        let stream = Stream::new()
            .data(&json!({"choices": [choice]}).to_string())
            .done();
        let message = streamed(&json!({"stop_sequences": ["END"]}), &settings, &[stream]);
        (message.stop_reason.unwrap(), message.stop_sequence)
    };
    assert_eq!(
        stopped("END"),
        ("stop_sequence".to_owned(), Some("END".to_owned()))
    );
    assert_eq!(stopped("<|im_end|>"), ("end_turn".to_owned(), None));
}
