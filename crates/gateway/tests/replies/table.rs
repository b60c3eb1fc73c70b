//! The client's response for texts of the model, one line per case.

use std::fmt::Write as _;

use plaincall_gateway::translation::{Exchange, Flow, Next, Reply, StreamedResponse};
use plaincall_gateway::{Markers, ModelSettings, Secret};
use plaincall_syntax::Dialect;
use plaincall_testkit::strict_client::read_answer;
use plaincall_wire::openai::ChatCompletionChunk;
use plaincall_wire::sse::Limits;
use serde_json::{Value, json};

use crate::replies::expected::without_reason;
use crate::replies::model::{Outcome, Stream, exchange, plan, recorded, streaming};

pub(crate) const ADD: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";
pub(crate) const WRONG: &str = "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n";

/// A line of what was recorded: the text, the calls, the end.
pub(crate) fn line(outcome: &Outcome) -> String {
    let recorded = &outcome.recorded;
    let mut line = format!("{:?}", recorded.content);
    if !recorded.reasoning.is_empty() {
        let _ = write!(line, " thought {:?}", recorded.reasoning);
    }
    for call in &recorded.calls {
        let _ = write!(line, " {}({})", call.name, without_reason(&call.arguments));
    }
    match (&recorded.finish_reason, &recorded.error) {
        (Some(reason), None) => line + " " + reason,
        (None, Some(error)) => line + " error: " + error,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn check(
    fields: &Value,
    settings: &ModelSettings,
    text: &str,
    reason: &str,
    expected: &str,
) {
    let outcome = recorded(&plan(fields, settings), &[text], reason);
    assert_eq!(line(&outcome), expected, "{text:?}");
}

#[test]
fn streamed() {
    let settings = streaming();
    let check = |text: &str, reason: &str, expected: &str| {
        check(&json!({}), &settings, text, reason, expected);
    };
    check("Hi.\n", "stop", r#""Hi.\n" stop"#);
    check(" \n", "stop", r#"" \n" stop"#);
    check("Hi.", "length", r#""Hi." length"#);
    check("Hi.", "content_filter", r#""Hi." content_filter"#);
    check("Hi.", "eos", r#""Hi." stop"#);
    check("Hi.", "stop_sequence", r#""Hi." stop"#);
    check("Hi.", "tool_use", r#""Hi." stop"#);
    check("Hi.", "max_tokens", r#""Hi." length"#);
    check("Hi.", "safety", r#""Hi." content_filter"#);
    check("Hi.", "abort", r#""Hi." length"#);
    check(ADD, "stop", r#""" add({"a":5}) tool_calls"#);
    check(ADD, "length", r#""" add({"a":5}) length"#);
    check(
        &format!("\n\nI add.\n{ADD}\n{ADD} Done. \n"),
        "stop",
        r#""\n\nI add.\n\n Done. \n" add({"a":5}) add({"a":5}) tool_calls"#,
    );
    // A call that is wrong is left so that no client can read it, however it tries.
    check(WRONG, "stop", r#""" add({"a":]) tool_calls"#);
    check(
        "!!!GADGET_START:nope\n!!!GADGET_END",
        "stop",
        r#""" nope({]) tool_calls"#,
    );
    check(
        "!!!GADGET_START:write\n!!!ARG:path\na\n!!!ARG:oops\nb",
        "stop",
        r#""" write({"path":"a"]) tool_calls"#,
    );
    check(
        "!!!GADGET_START:write\n!!!ARG:path\nab",
        "length",
        r#""" write({"path":"ab"]) length"#,
    );
    check(
        "!!!GADGET_START:write\n!!!ARG:path\nab",
        "stop",
        r#""" write({"path":"ab"}) tool_calls"#,
    );
    // Not every reason means that the reply is complete.
    for (reason, end) in [
        ("insufficient_system_resource", "tool_calls"),
        ("abort", "tool_calls"),
        ("model_length", "length"),
    ] {
        check(
            "!!!GADGET_START:write\n!!!ARG:path\nab",
            reason,
            &format!(r#""" write({{"path":"ab"]) {end}"#),
        );
        check(ADD, reason, &format!(r#""" add({{"a":5}}) {end}"#));
    }
    check(
        "!!!GADGET_START:write\n!!!ARG:path\nab",
        "eos",
        r#""" write({"path":"ab"}) tool_calls"#,
    );
    check(
        "!!!GADGET_START:now:n:later\n!!!GADGET_END",
        "stop",
        r#""" now({]) tool_calls"#,
    );
    // Markers that mean nothing are text, except a repeated end of a call.
    check("a !!!GADGET_END b", "stop", r#""a !!!GADGET_END b" stop"#);
    check(
        &format!("{ADD}!!!GADGET_END\n"),
        "stop",
        r#""" add({"a":5}) tool_calls"#,
    );
    check(
        "!!!GADGET_!!!GADGET_ENDEND",
        "stop",
        r#""!!!GADGET_!!!GADGET_ENDEND" stop"#,
    );
    check("!!!GADGET_EN\\D", "stop", r#""!!!GADGET_END" stop"#);
    check("!!!GADGET_START:add", "length", r#""" length"#);
    // Reasoning.
    check(
        &format!("<think>a{ADD}b</think>c"),
        "stop",
        r#""c" thought "a!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\nb" stop"#,
    );
}

#[test]
fn a_reply_ends_before_a_call_that_waits_for_another() {
    let plan = plan(&json!({}), &ModelSettings::default());
    let first = "!!!GADGET_START:now:n\n!!!GADGET_END\n";
    let second = "!!!GADGET_START:add:a:n\n!!!ARG:a\n5\n!!!GADGET_END\n";
    let third = "That is all.";
    let stream = Stream::new()
        .texts([first, second, third])
        .finish("stop")
        .done();
    let outcome = exchange(&plan, &[stream], &[50], false);
    assert!(outcome.is_over_early);
    assert_eq!(outcome.counts.dependent_calls, 1);
    assert_eq!(line(&outcome), r#""" now({}) tool_calls"#);
}

#[test]
fn ends_of_reasoning_without_a_beginning_are_counted() {
    let plan = plan(&json!({}), &ModelSettings::default());
    for (text, count) in [
        ("I think.\n</think>\nSo.\n</think>\nDone.", 1),
        ("<think>a</think>b", 0),
        ("`</think>` ends it.", 0),
    ] {
        let counts = recorded(&plan, &[text], "stop").counts;
        assert_eq!(counts.unmatched_reasoning, count, "{text}");
    }
}

#[test]
fn choices() {
    let settings = streaming();
    let check = |fields: &Value, text: &str, expected: &str| {
        check(fields, &settings, text, "stop", expected);
    };
    let named = json!({"tool_choice": {"type": "function", "function": {"name": "now"}}});
    check(&named, ADD, r#""" add({]) tool_calls"#);
    check(
        &named,
        "!!!GADGET_START:now\n!!!GADGET_END",
        r#""" now({}) tool_calls"#,
    );
    check(
        &json!({"tool_choice": "none"}),
        &format!("So: {ADD}"),
        r#""So: " stop"#,
    );
    check(&json!({"tool_choice": "required"}), "No.", r#""No." stop"#);
    check(
        &json!({"parallel_tool_calls": false}),
        &format!("{ADD}{ADD}"),
        r#""" add({"a":5}) tool_calls"#,
    );
    for stop in [json!({"stop": ["x"]}), json!({"stop_token_ids": [7]})] {
        check(
            &stop,
            "!!!GADGET_START:write\n!!!ARG:path\nab",
            r#""" write({"path":"ab"]) tool_calls"#,
        );
    }
}

#[test]
fn emoji_and_keyed() {
    let mut emoji = streaming();
    emoji.dialect = Dialect::emoji();
    check(
        &json!({}),
        &emoji,
        "So:\n🛠️[add 5]🛠️[/end]\n",
        "stop",
        r#""So:\n" add({"a":5}) tool_calls"#,
    );
    check(
        &json!({}),
        &emoji,
        "🛠️[add 5]",
        "stop",
        r#""" add({"a":5]) tool_calls"#,
    );
    let keyed = crate::settings(|settings| {
        settings.markers = Markers::Keyed;
    });
    check(
        &json!({}),
        &keyed,
        "So !!!GADGET_END",
        "stop",
        r#""So !!!GADGET_END" stop"#,
    );
    let plan = plan(&json!({}), &keyed);
    let markers = plan.dialect().markers().unwrap();
    let call = format!("{}now\n{}", markers[0].text, markers[1].text);
    assert_eq!(
        line(&recorded(&plan, &[&call], "stop")),
        r#""" now({}) tool_calls"#
    );
}

#[test]
fn reasoning_begun_in_the_prompt() {
    let mut settings = ModelSettings::default();
    settings.dialect = settings.dialect.in_reasoning();
    check(
        &json!({}),
        &settings,
        &format!("hm {ADD}</think>{ADD}"),
        "stop",
        r#""" thought "hm !!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n" add({"a":5}) tool_calls"#,
    );
}

/// The usage of a cancelled request is estimated.
#[test]
fn usage_counts_the_rounds_that_the_client_does_not_see() {
    let fields = json!({"stream_options": {"include_usage": true}});
    let plan = plan(&fields, &ModelSettings::default());
    let near_miss = Stream::new().texts(["!!!GADGET_START:now"]).finish("stop");
    let streams = [
        Stream::new().texts([WRONG]).finish("stop").usage(10).done(),
        near_miss.usage(20).done(),
        Stream::new().texts([ADD]).finish("stop").usage(30).done(),
    ];
    let usage = exchange(&plan, &streams, &[usize::MAX], false)
        .recorded
        .usage
        .unwrap();
    let tokens = WRONG.len() / 4;
    assert_eq!(
        usage,
        json!({"prompt_tokens": 30 + 20 + 30, "completion_tokens": tokens + 2, "total_tokens": 80 + tokens + 2})
    );
}

#[test]
fn reasoning_of_the_server_and_usage() {
    let fields = json!({"stream_options": {"include_usage": true}});
    let plan = plan(&fields, &ModelSettings::default());
    for name in ["reasoning", "reasoning_content"] {
        let stream = Stream::new()
            .thought(name, "hm ")
            .thought(name, ADD)
            .texts(["Yes."]);
        let stream = stream.finish("stop").usage(10).done();
        let outcome = exchange(&plan, &[stream], &[usize::MAX], false);
        assert_eq!(outcome.recorded.reasoning, format!("hm {ADD}"));
        assert_eq!(outcome.recorded.content, "Yes.");
        assert_eq!(outcome.recorded.usage.unwrap()["total_tokens"], 11);
    }
}

#[test]
#[allow(clippy::too_many_lines, reason = "most of them are a table")]
fn ends_of_the_server() {
    let plan = plan(&json!({}), &streaming());
    let open = "!!!GADGET_START:write\n!!!ARG:path\nab";
    let started = |text: &str| Stream::new().texts([text]);
    let no_choices = r#""" error: the model server returned no choices"#;
    let error = r#"{"error":{"message":"overloaded","type":"server_error","code":503}}"#;
    let native = r#""Hi." error: the model server returned a native tool call although it was offered no tools: turn off its tool parsing"#;
    let cases = [
        // `[DONE]` without a reason.
        (started("Hi.").done(), false, r#""Hi." stop"#),
        (started(ADD).done(), false, r#""" add({"a":5}) tool_calls"#),
        (
            started(open).done(),
            false,
            r#""" write({"path":"ab"]) length"#,
        ),
        // Without a choice.
        (Stream::new().done(), false, no_choices),
        (Stream::new().usage(7).done(), false, no_choices),
        // The stream is truncated.
        (
            started("Hi."),
            false,
            r#""Hi." error: the model server's answer is incomplete"#,
        ),
        (
            started(open),
            true,
            r#""" write({"path":"ab) error: it broke"#,
        ),
        (Stream::new(), true, r#""" error: it broke"#),
        // It is truncated after the end of the reply.
        (started("Hi.").finish("stop"), true, r#""Hi." stop"#),
        (
            started(ADD).finish("stop"),
            false,
            r#""" add({"a":5}) tool_calls"#,
        ),
        // Errors.
        (
            started("Hi.").data(error),
            false,
            r#""Hi." error: overloaded"#,
        ),
        (
            started("Hi.").finish("stop").data(error),
            false,
            r#""Hi." stop"#,
        ),
        (
            started("Hi.").data("oops"),
            false,
            r#""Hi." error: the model server's answer cannot be parsed: expected value (line 1, column 1)"#,
        ),
        (
            Stream::new()
                .data(r#"{"object":"error","message":"too long","code":400}"#)
                .done(),
            false,
            r#""" error: too long"#,
        ),
        (
            Stream(b"event: error\ndata: {\"message\":\"too long\"}\n\n".to_vec()).done(),
            false,
            r#""" error: too long"#,
        ),
        // An error in a field of its own.
        (
            Stream(b"error: {\"code\":400,\"message\":\"too long\"}\n\n".to_vec()).done(),
            false,
            r#""" error: too long"#,
        ),
        (
            Stream([started("Hi.").0, b"error: {\"message\":\"too long\"}\n".to_vec()].concat())
                .done(),
            false,
            r#""Hi." error: too long"#,
        ),
        (
            Stream::new().data(r#"{"error":""}"#),
            false,
            r#""" error: the model server failed without an error message"#,
        ),
        // Something that is there to keep the connection.
        (
            started("Hi.").data("").texts(["Ho."]).finish("stop").done(),
            false,
            r#""Hi.Ho." stop"#,
        ),
        // Calls that are not for the server to find.
        (
            started("Hi.").data(
                r#"{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"now","arguments":"{}"}}]}}]}"#,
            ),
            false,
            native,
        ),
        (
            started("Hi.").data(
                r#"{"choices":[{"delta":{"function_call":{"name":"now","arguments":"{}"}}}]}"#,
            ),
            false,
            native,
        ),
        (
            started("Hi.")
                .data(
                    r#"{"choices":[{"delta":{"tool_calls":[],"function_call":null},"finish_reason":"stop"}]}"#,
                )
                .done(),
            false,
            r#""Hi." stop"#,
        ),
        // What comes after the end does not count.
        (
            started("Hi.")
                .finish("stop")
                .texts([ADD])
                .finish("stop")
                .done(),
            false,
            r#""Hi." stop"#,
        ),
    ];
    for (stream, broken, expected) in cases {
        let outcome = exchange(&plan, std::slice::from_ref(&stream), &[usize::MAX], broken);
        assert_eq!(
            line(&outcome),
            expected,
            "{}",
            String::from_utf8_lossy(&stream.0)
        );
    }
}

/// The bytes that the client gets of a stream.
fn bytes(stream: &Stream) -> String {
    let fields = json!({"stream_options": {"include_usage": true}});
    let plan = plan(&fields, &ModelSettings::default());
    let answer = StreamedResponse::new("chatcmpl-0", 1, true);
    let reply = Reply::new(plan, Secret::new("seed"), Box::new(answer));
    let mut exchange = Exchange::new(reply, Limits::default());
    exchange.feed(&stream.0);
    exchange.end(None);
    String::from_utf8(exchange.take()).unwrap()
}

#[test]
fn fields_beside_the_answer() {
    // Before it, with empty names.
    let stream =
        Stream::new().data(r#"{"choices":[],"created":0,"id":"","model":"","filter":[1]}"#);
    let stream = stream.texts(["Hi."]).finish("stop");
    let usage = r#"{"id":"chatcmpl-9","choices":[],"usage":{"total_tokens":3},"timings":{"ms":1}}"#;
    let bytes = bytes(&stream.data(usage).done());
    let chunks: Vec<&str> = bytes.split_terminator("\n\n").collect();
    assert!(chunks[0].contains(r#""id":"chatcmpl-9""#), "{bytes}");
    assert!(chunks[0].contains(r#""model":"m""#), "{bytes}");
    assert!(chunks[0].contains(r#""filter":[1]"#), "{bytes}");
    // And behind it.
    assert!(
        chunks[chunks.len() - 2].contains(r#""timings":{"ms":1}"#),
        "{bytes}"
    );
}

#[test]
fn a_server_that_continues_after_the_end() {
    let plan = plan(&json!({}), &ModelSettings::default());
    let more = std::iter::repeat_n("more", 1000);
    let stream = Stream::new().texts(["Hi."]).finish("stop").texts(more);
    let outcome = exchange(&plan, &[stream], &[100], false);
    assert!(outcome.is_over_early);
    assert_eq!(line(&outcome), r#""Hi." stop"#);
}

#[test]
fn without_rounds_of_repair() {
    let settings = crate::settings(|settings| {
        settings.repair_rounds = 0;
    });
    let error = r#""" error: the model wrote an invalid call"#;
    check(&json!({}), &settings, WRONG, "stop", error);
}

/// Only the possible beginning of a marker, white space before the first other text, and a short text after a call are held
/// back.
#[test]
fn text_leaves_at_once() {
    let settings = ModelSettings::default();
    for (texts, left) in [
        (
            &["I ", "see.\n", "\n", "So"][..],
            &["I ", "see.\n", "\n", "So"][..],
        ),
        (&["\n", "\n", "a", " "], &["", "", "\n\na", " "]),
        (&["a!!", "!", "b"], &["a", "", "!!!b"]),
        (&["a<th", "ink", "s"], &["a", "", "<thinks"]),
        (
            &["!!!GADGET_START:now\n!!!GADGET_END", "\n", "Next"],
            &["", "", ""],
        ),
    ] {
        let plan = plan(&json!({}), &settings);
        let answer = StreamedResponse::new("c", 0, false);
        let mut reply = Reply::new(plan, Secret::new("seed"), Box::new(answer));
        for (text, left) in texts.iter().zip(left) {
            let chunk = json!({"choices": [{"delta": {"content": text}}]}).to_string();
            let chunk = ChatCompletionChunk::read(&chunk).unwrap().unwrap();
            reply.push(chunk);
            let bytes = String::from_utf8(reply.encoder_mut().take()).unwrap();
            let events = bytes.split_terminator("\n\n");
            let summaries = events.map(|event| {
                let chunk: Value =
                    serde_json::from_str(event.strip_prefix("data: ").unwrap()).unwrap();
                let content = &chunk["choices"][0]["delta"]["content"];
                content.as_str().unwrap_or_default().to_owned()
            });
            assert_eq!(
                summaries.collect::<String>(),
                *left,
                "{text:?} of {texts:?}"
            );
        }
    }
}

/// A header that is too long is text. If its marker has a key, it is removed, however long ago it arrived.
#[test]
fn headers_that_are_too_long() {
    let long = "x".repeat(5000);
    for (dialect, markers, rest) in [
        (Dialect::block(), Markers::Plain, format!("{long}\nb")),
        (Dialect::emoji(), Markers::Plain, format!("{long}]\nb")),
        (Dialect::block(), Markers::Keyed, format!("{long}\nb")),
    ] {
        let settings = crate::settings(|settings| {
            settings.dialect = dialect;
            settings.markers = markers;
        });
        let plan = plan(&json!({}), &settings);
        let markers = plan.dialect().markers().unwrap();
        let text = format!("a {}{rest}", markers[0].text);
        let expected = if plan.dialect().is_keyed() {
            format!("a {rest}")
        } else {
            text.clone()
        };
        for size in [3, 7, usize::MAX] {
            let pieces = plaincall_testkit::untrusted::chunks(&text, &[size]);
            let outcome = recorded(&plan, &pieces, "stop");
            assert_eq!(outcome.recorded.content, expected, "pieces of {size}");
            assert_eq!(outcome.counts.stray_markers, 1);
        }
    }
}

#[test]
fn long_names_are_not_repeated_in_each_chunk() {
    for (length, is_kept) in [(1024, true), (1025, false)] {
        let name = "n".repeat(length);
        let started = json!({"id": name, "model": name, "system_fingerprint": name,
            "choices": [{"delta": {"content": "a"}}]});
        let stream = Stream::new().data(&started.to_string());
        let stream = stream.texts(["b", "c"]).finish("stop").done();
        let answer = StreamedResponse::new("chatcmpl-0", 1, false);
        let reply = Reply::new(
            plan(&json!({}), &ModelSettings::default()),
            Secret::new("seed"),
            Box::new(answer),
        );
        let mut exchange = Exchange::new(reply, Limits::default());
        exchange.feed(&stream.0);
        assert_eq!(exchange.end(None), Next::Done);
        let bytes = exchange.take();
        assert_eq!(read_answer(&bytes, false).content, "abc");
        let text = String::from_utf8(bytes).unwrap();
        assert_eq!(text.contains(&name), is_kept);
        assert_eq!(text.contains("chatcmpl-0"), !is_kept);
    }
}

#[test]
fn a_reply_without_end() {
    // In a call that does not leave: nothing is written, so it is quick.
    let plan = plan(&json!({"tool_choice": "none"}), &ModelSettings::default());
    let answer = StreamedResponse::new("c", 0, false);
    let mut reply = Reply::new(plan, Secret::new("seed"), Box::new(answer));
    let chunk = |text: &str| json!({"choices": [{"delta": {"content": text}}]}).to_string();
    let begin = chunk("!!!GADGET_START:now\n!!!ARG:x\n");
    let begin = ChatCompletionChunk::read(&begin).unwrap().unwrap();
    assert_eq!(reply.push(begin), Flow::Continue);
    let more = chunk(&"x".repeat(16 << 20));
    let more = ChatCompletionChunk::read(&more).unwrap().unwrap();
    let flows = (0..4).map(|_| reply.push(more.clone()));
    let flows: Vec<Flow> = flows.collect();
    assert_eq!(
        flows,
        [Flow::Continue, Flow::Continue, Flow::Continue, Flow::Stop]
    );
    let Next::Failed(error) = reply.end(Ok(())) else {
        panic!("it has no end");
    };
    assert!(error.message().contains("exceeds 67108864 bytes"));
}

#[test]
fn a_reply_ends_once_even_if_its_end_is_repeated() {
    let twice = json!({"choices": [
        {"index": 0, "delta": {"content": ADD}, "finish_reason": "stop"},
        {"delta": {}, "finish_reason": "stop"},
    ]});
    let stream = Stream::new().data(&twice.to_string()).done();
    let plan = plan(&json!({}), &ModelSettings::default());
    let outcome = exchange(&plan, &[stream], &[usize::MAX], false);
    assert_eq!(line(&outcome), r#""" add({"a":5}) tool_calls"#);
}
