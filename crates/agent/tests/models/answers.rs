//! Replies of servers, in every form.

use std::time::Duration;

use plaincall_agent::model::{Anthropic, Json, Model, OpenAi, Piece, ReplyNext};
use plaincall_testkit::model_server::{Framing, Head, ModelServer, Script, Then, chunk};
use serde_json::{Value, json};

use crate::models::received::{ask, question, summary};

/// The collected content of an answer.
async fn summary_of(script: Script) -> String {
    let server = ModelServer::start(vec![script]).await;
    summary(&ask(&OpenAi::new(server.url(), "m")).await)
}

fn stream(body: &str) -> Script {
    let head = Head::new(200).header("content-type", "text/event-stream");
    Script::new(head, vec![body.as_bytes().to_vec()])
}

fn events(events: &[Value]) -> String {
    let events = events.iter().map(|event| format!("data: {event}\n\n"));
    events.collect()
}

fn text(text: &str) -> Value {
    json!({"choices": [{"delta": {"content": text}}]})
}

fn ends(reason: &str) -> Value {
    json!({"choices": [{"delta": {}, "finish_reason": reason}]})
}

#[tokio::test]
async fn reasons_to_end() {
    for (reason, expected) in [
        ("stop", "Natural"),
        ("end_turn", "Natural"),
        ("eos", "Natural"),
        ("tool_calls", "Natural"),
        ("length", "Length"),
        ("max_tokens", "Length"),
        ("content_filter", "Broken"),
        ("abort", "Broken"),
    ] {
        let script = Script::stream(&["a"], reason);
        assert_eq!(
            summary_of(script).await,
            format!("()a <{expected} {reason}>")
        );
    }
    // With stop sequences, the model may have stopped in the middle.
    let server = ModelServer::start(vec![Script::stream(&["a"], "stop")]).await;
    let model = OpenAi::new(server.url(), "m").field("stop", Json::new(&["\n"]));
    assert_eq!(summary(&ask(&model).await), "()a <Broken stop>");
}

#[tokio::test]
async fn how_a_stream_ends() {
    let (a, stop) = (text("a"), ends("stop"));
    let usage = json!({"choices": [], "usage": {"prompt_tokens": 5, "completion_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 4}}});
    let done = "data: [DONE]\n\n";
    let begun = [a.clone(), stop.clone(), usage.clone()];
    for (body, expected) in [
        (events(&begun) + done, "()a <Natural stop> {5 4 2}"),
        // Without its end.
        (events(&begun), "()a <Natural stop> {5 4 2}"),
        (
            events(&begun).trim_end().to_owned(),
            "()a <Natural stop> {5 4 2}",
        ),
        (events(std::slice::from_ref(&a)) + done, "()a <Broken ->"),
        (done.to_owned(), "() <Broken>"),
        (events(std::slice::from_ref(&a)), "()a <Broken>"),
        (String::new(), "() <Broken>"),
        // Data after the end does not count.
        (
            events(&[a.clone(), stop.clone(), text("b")]) + done,
            "()a <Natural stop>",
        ),
        (
            events(&[a.clone(), stop.clone()]) + "data: {\n\n",
            "()a <Natural stop>",
        ),
        (
            events(&[a.clone(), stop.clone(), json!({"error": {"message": "no"}})]),
            "()a <Natural stop>",
        ),
        // Nor do other choices than the first.
        (
            events(&[
                json!({"choices": [{"index": 1, "delta": {"content": "b"}, "finish_reason": "stop"}]}),
                a.clone(),
            ]) + done,
            "()a <Broken ->",
        ),
        // Harmless data.
        (
            format!(
                ": ping\n\nid: 7\nretry: 1\n\n{}{}{done}",
                events(&[json!({"choices": null})]),
                events(&[a.clone(), stop.clone()])
            ),
            "()a <Natural stop>",
        ),
        (
            "\u{FEFF}".to_owned() + &events(&[a.clone(), stop.clone()]),
            "()a <Natural stop>",
        ),
        // Invalid data.
        (
            events(std::slice::from_ref(&a)) + "data: {\n\n",
            "()a <Broken>",
        ),
        (events(&[a.clone(), json!({"choices": 7})]), "()a <Broken>"),
        (
            events(&[a.clone(), json!({"error": {"message": "no", "code": 503}})]),
            "()a <Busy>",
        ),
        (
            events(std::slice::from_ref(&a)) + "event: error\ndata: {\"message\":\"no\"}\n\n",
            "()a <Broken>",
        ),
        (
            "error: {\"message\":\"maximum context length is 4\"}\n\n".to_owned() + done,
            "() <TooLong>",
        ),
        (
            events(&[json!({"object": "error", "message": "maximum context length is 4"})]),
            "() <TooLong>",
        ),
        (
            events(&[
                json!({"choices": [{"delta": {"refusal": "I may not."}, "finish_reason": "stop"}]}),
            ]),
            "()I may not. <Natural stop>",
        ),
        (
            events(&[json!({"choices": [{"delta": {"function_call": {"name": "x"}}}]})]),
            "() <Refused>",
        ),
    ] {
        assert_eq!(summary_of(stream(&body)).await, expected, "{body}");
    }
    // The connection stays open, and nothing more arrives. The client does not wait that long for the usage.
    for then in [Then::Break, Then::Reset] {
        let summary = summary_of(stream(&events(&begun)).only(1, then)).await;
        let is_expected = summary == "()a <Natural stop> {5 4 2}";
        // A reset may lose everything.
        assert!(
            is_expected || (then == Then::Reset && summary.ends_with("<Broken>")),
            "{summary}"
        );
    }
}

#[tokio::test]
async fn every_content_type() {
    let streamed = events(&[text("a"), ends("stop")]);
    let whole = json!({"choices": [{"message": {"content": "a"}, "finish_reason": "stop"}]});
    for content_type in [
        "",
        "text/plain",
        "application/json",
        "text/event-stream",
        "text/html",
    ] {
        for (body, is_stream) in [(streamed.clone(), true), (format!("\n {whole}"), false)] {
            if content_type == "text/event-stream" && !is_stream {
                continue;
            }
            let mut head = Head::new(200);
            if !content_type.is_empty() {
                head = head.header("content-type", content_type);
            }
            let pieces = body.chars().map(|one| one.to_string().into_bytes());
            let script = Script::new(head, pieces.collect()).framing(Framing::Close);
            assert_eq!(
                summary_of(script).await,
                "()a <Natural stop>",
                "{content_type} {body}"
            );
        }
    }
    for (body, expected) in [
        (json!({"choices": []}), "() <Broken>"),
        (
            json!({"error": {"message": "no", "code": 500}}),
            "() <Busy>",
        ),
        (
            json!({"choices": [{"message": {"content": "a"}}]}),
            "()a <Broken ->",
        ),
        (json!([]), "() <Broken>"),
    ] {
        assert_eq!(
            summary_of(Script::json(200, &body)).await,
            expected,
            "{body}"
        );
    }
}

#[tokio::test]
async fn messages_as_a_stream() {
    let start = json!({"type": "message_start", "message": {"usage": {
        "input_tokens": 3, "cache_creation_input_tokens": 10, "cache_read_input_tokens": 20, "output_tokens": 1}}});
    let text = json!({"type": "content_block_delta", "delta": {"type": "text_delta", "text": "a"}});
    let ending = |reason: &str| json!({"type": "message_delta", "delta": {"stop_reason": reason}, "usage": {"output_tokens": 9}});
    let stop = json!({"type": "message_stop"});
    let begun = "{33 20 1}";
    for (list, expected) in [
        (
            vec![ending("end_turn"), stop.clone()],
            "()a <Natural end_turn> {33 20 9}",
        ),
        (vec![ending("end_turn")], "()a <Natural end_turn> {33 20 9}"),
        (
            vec![ending("max_tokens"), stop.clone()],
            "()a <Length max_tokens> {33 20 9}",
        ),
        (
            vec![ending("model_context_window_exceeded")],
            "()a <Length model_context_window_exceeded> {33 20 9}",
        ),
        (
            vec![ending("stop_sequence")],
            "()a <Broken stop_sequence> {33 20 9}",
        ),
        (vec![ending("refusal")], "()a <Broken refusal> {33 20 9}"),
        (vec![stop.clone()], &format!("()a <Broken -> {begun}")),
        (vec![], &format!("()a <Broken> {begun}")),
        (
            vec![
                json!({"type": "error", "error": {"type": "rate_limit_error", "message": "slow down"}}),
            ],
            &format!("()a <Busy> {begun}"),
        ),
        (vec![json!({"type": 7})], &format!("()a <Broken> {begun}")),
        (
            vec![
                json!({"type": "content_block_start", "content_block": {"type": "text", "text": "b"}}),
                ending("end_turn"),
            ],
            "()ab <Natural end_turn> {33 20 9}",
        ),
    ] {
        let all = [vec![start.clone(), text.clone()], list].concat();
        let server = ModelServer::start(vec![stream(&events(&all))]).await;
        assert_eq!(
            summary(&ask(&Anthropic::at(server.url(), "m")).await),
            expected
        );
    }
    let error = json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 9 tokens > 8 maximum"}});
    for (status, body, expected) in [
        (400, error, "() <TooLong>"),
        (
            200,
            json!({"type": "error", "error": {"type": "api_error", "message": "no"}}),
            "() <Busy>",
        ),
        (200, json!({"type": "message"}), "() <Broken>"),
        (
            200,
            json!({"content": [{"type": "tool_use", "name": "x"}]}),
            "() <Refused>",
        ),
        (
            200,
            json!({"content": [{"type": "text", "text": "a"}], "stop_reason": "end_turn"}),
            "()a <Natural end_turn>",
        ),
    ] {
        let server = ModelServer::start(vec![Script::json(status, &body)]).await;
        assert_eq!(
            summary(&ask(&Anthropic::at(server.url(), "m")).await),
            expected
        );
    }
}

#[tokio::test]
async fn pieces_come_at_once_and_dropping_takes_the_request_back() {
    let pieces = vec![chunk(&json!({"content": "a"}), &Value::Null)];
    let head = Head::new(200).header("content-type", "text/event-stream");
    let server = ModelServer::start(vec![Script::new(head, pieces).only(1, Then::Stall)]).await;
    let model = OpenAi::new(server.url(), "m");
    let mut reply = model.reply(question());
    // Nothing is sent before the reply is polled.
    tokio::time::sleep(Duration::from_millis(20)).await;
    assert_eq!(server.seen().requests.len(), 0);
    let first = reply.next().await.expect("a piece").expect("no error");
    assert!(matches!(first, ReplyNext::Piece(Piece::Text(text)) if text == "a"));
    // Dropping a wait loses nothing.
    let waited = tokio::time::timeout(Duration::from_millis(20), reply.next()).await;
    assert!(waited.is_err());
    assert_eq!(server.seen().dropped, 0);
    drop(reply);
    server
        .until(|seen| seen.dropped == 1 && seen.open == 0)
        .await;
}

/// A server that counts UTF-16 units splits an emoji, and writes each half as an escape.
#[tokio::test]
async fn an_emoji_that_was_cut_in_two() {
    let chunk = |content: &str| {
        format!("data: {{\"choices\":[{{\"delta\":{{\"content\":\"{content}\"}}}}]}}\n\n")
    };
    for (pieces, expected) in [
        (&["a\\ud83d", "\\ude00b"][..], "a\u{1f600}b"),
        (
            &["\\uD83D", "", "\\uDE00\\uD83D", "\\uDE01"],
            "\u{1f600}\u{1f601}",
        ),
        (&["a\\ud83db"], "a\u{fffd}b"),
        (&["a\\ud83d", "b"], "a\u{fffd}b"),
        (&["\\ude00a"], "\u{fffd}a"),
    ] {
        let body: String = pieces.iter().map(|piece| chunk(piece)).collect();
        let script = stream(&(body + &events(&[ends("stop")])));
        assert_eq!(
            summary_of(script).await,
            format!("(){expected} <Natural stop>")
        );
    }
}
