//! Deadlines and keep-alive chunks, on a clock that is stopped.

use std::time::Duration;

use http::Request;
use plaincall_gateway::Body;
use plaincall_gateway::translation::ClientApi;
use plaincall_testkit::model_server::{Head, Piece, Script, Then};
use plaincall_testkit::strict_client::{Recorded, read_answer};
use serde_json::json;

use crate::replies::memory::{Client, Played, TestGateway};
use crate::replies::model::{Stream, request};

const ADD: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";

/// A reply with this behind its reason, each piece half a second later.
fn late(text: &str, pieces: Vec<Vec<u8>>, then: Then) -> Script {
    let mut script = Script::stream(&[text], "stop").only(2, then);
    script.pieces.extend(pieces.into_iter().map(|bytes| Piece {
        after: Duration::from_millis(500),
        bytes,
    }));
    script
}

fn usage() -> Vec<u8> {
    let usage = json!({"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11});
    format!("data: {}\n\n", json!({"choices": [], "usage": usage})).into_bytes()
}

fn chat_request() -> Request<Body> {
    let body = request(&json!({"stream_options": {"include_usage": true}}));
    let request = Request::post("/v1/chat/completions");
    request.body(Body::from(body.to_string())).unwrap()
}

/// Plays a response that ends normally.
fn play(gateway: &TestGateway, scripts: Vec<Script>, client: Client) -> (Recorded, Played) {
    let played = gateway.play(chat_request(), scripts, client);
    assert_eq!(played.got.end, Some(Ok(())));
    assert_eq!(played.report.error, None);
    let recorded = read_answer(&played.got.bytes, true);
    assert_eq!(recorded.error, None);
    (recorded, played)
}

#[test]
fn clients_that_wait_receive_keep_alives() {
    let gateway = TestGateway::new(|_| {});
    let mut script = Script::stream(&["Yes."], "stop");
    script.pieces[0].after = Duration::from_secs(40);
    let (recorded, played) = play(&gateway, vec![script], Client::Reads(Duration::ZERO));
    assert_eq!(recorded.content, "Yes.");
    let text = String::from_utf8(played.got.bytes).unwrap();
    let comments = ": keep-alive\n\n".repeat(2);
    assert!(text.starts_with(&comments), "{text}");
    assert_eq!(text.matches("keep-alive").count(), 2);
}

/// While a call is held back, or the model is asked again, chunks come that hold nothing.
#[test]
fn empty_deltas_keep_a_client_waiting() {
    let gateway = TestGateway::new(|_| {});
    let slow = |texts: &[&str]| {
        let mut script = Script::stream(texts, "stop");
        for piece in &mut script.pieces {
            piece.after = Duration::from_secs(10);
        }
        script
    };
    let pieces = [
        "Yes.\n",
        "!!!GADGET_START:add\n",
        "!!!ARG:a\n",
        "fi",
        "ve",
        "\n!!!GADGET_END\n",
    ];
    let scripts = vec![slow(&pieces), slow(&[ADD])];
    let (recorded, played) = play(&gateway, scripts, Client::Reads(Duration::ZERO));
    assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)]);
    let text = String::from_utf8(played.got.bytes).unwrap();
    let empty =
        r#""choices":[{"index":0,"delta":{},"logprobs":null,"finish_reason":null}],"usage":null}"#;
    // The call is held back for 50 seconds, and the round takes 20: one for every 15 of them.
    assert_eq!(text.matches(empty).count(), 4, "{text}");
    assert_eq!(text.matches("keep-alive").count(), 0, "{text}");
}

/// While the model thinks, and its reasoning is hidden or does not arrive, each API has its own event or a comment.
#[test]
fn thinking_keeps_a_client_waiting() {
    let gateway = TestGateway::new(|_| {});
    let stream = Stream::new().thought("reasoning_content", "Hm.").0;
    let mut script = Script::stream(&["Yes."], "stop");
    script.pieces[0].after = Duration::from_secs(40);
    let begin = (0..4).map(|_| Piece {
        after: Duration::from_secs(10),
        bytes: stream.clone(),
    });
    script.pieces.splice(0..0, begin);
    for (api, fields, events, comments) in [
        // The first event is sent at the beginning. The reasoning is not sent.
        (ClientApi::Messages, json!({}), 1 + 4, 0),
        (
            ClientApi::Messages,
            json!({"thinking": {"type": "enabled"}}),
            1 + 2,
            0,
        ),
        (ClientApi::Responses, json!({}), 0, 2),
        (ClientApi::Chat, json!({}), 0, 2),
        // The reasoning is sent at the beginning, and lines begin with a blank.
        (ClientApi::Ollama, json!({}), 0, 0),
    ] {
        let mut body = match api {
            ClientApi::Messages => crate::messages::model::request(&fields),
            _ => crate::apis::request(api, &fields),
        };
        body["stream"] = json!(true);
        let request = Request::post(api.path()).body(Body::from(body.to_string()));
        let played = gateway.play(
            request.unwrap(),
            vec![script.clone()],
            Client::Reads(Duration::ZERO),
        );
        assert_eq!(played.got.end, Some(Ok(())));
        let text = String::from_utf8(played.got.bytes).unwrap();
        assert!(text.contains("Yes."), "{text}");
        assert_eq!(
            text.matches("event: ping").count(),
            events,
            "{api:?} {text}"
        );
        assert_eq!(
            text.matches(": keep-alive").count(),
            comments,
            "{api:?} {text}"
        );
    }
}

#[test]
fn abandoned_upstreams_are_cancelled() {
    let gateway = TestGateway::new(|config| {
        config.timeouts.keep_alive = Duration::from_hours(1);
    });
    let started = |pieces| Script::stream(&["I add.\n", ADD], "stop").only(pieces, Then::Stall);
    let page = Head::new(503).header("content-type", "text/html");
    let page = Script::new(page, vec![b"<title>Closed".to_vec()]).only(1, Then::Stall);
    for (script, status, words, seconds) in [
        (
            Script::nothing(Then::Stall),
            504,
            "did not start to answer within",
            600,
        ),
        (started(0), 504, "stopped sending data", 300),
        // A truncated error is reported as far as it was received.
        (page, 503, "status 503: Closed", 2),
        (started(1), 200, "stopped sending data", 300),
        (started(2), 200, "stopped sending data", 300),
    ] {
        let played = gateway.play(chat_request(), vec![script], Client::Reads(Duration::ZERO));
        assert_eq!(played.got.status, Some(status), "{words}");
        let text = String::from_utf8(played.got.bytes.clone()).unwrap();
        assert!(text.contains(words), "{words} in {text}");
        // The server's message may quote the conversation.
        let message = played.report.error.unwrap();
        assert!(message.contains(words) || status == 503, "{message}");
        let most = Duration::from_millis(seconds * 1000 + 50);
        assert!(played.time <= most, "{:?}", played.time);
        assert!(played.time >= Duration::from_secs(seconds));
        if status == 200 {
            let recorded = read_answer(&played.got.bytes, true);
            assert_eq!(recorded.content, "I add.\n");
            assert!(recorded.error.unwrap().contains(words));
        }
    }
}

#[test]
fn no_client_waits_for_a_server_that_continues() {
    let gateway = TestGateway::new(|_| {});
    let comment = b": x\n\n".to_vec();
    let nothing = b"data:\n\n".to_vec();
    let mut after_four = vec![comment.clone(); 7];
    after_four.push(usage());
    let mut after_six = vec![comment.clone(); 11];
    after_six.push(usage());
    let at_once = |bytes: &[u8]| {
        let mut script = late("Yes.", vec![bytes.repeat(1 << 20)], Then::Stall);
        script.pieces[2].after = Duration::ZERO;
        script
    };
    let table = [
        (late("Yes.", vec![comment; 1000], Then::Stall), 5000, false),
        (late("Yes.", vec![nothing; 1000], Then::Stall), 5000, false),
        (late("Yes.", Vec::new(), Then::Stall), 5000, false),
        (late("Yes.", after_four.clone(), Then::Stall), 5000, true),
        (late("Yes.", after_four.clone(), Then::End), 4000, true),
        (late("Yes.", after_four, Then::Reset), 4000, true),
        (late("Yes.", after_six, Then::End), 5000, false),
        (at_once(b": x\n"), 0, false),
        (at_once(b"data:\n\n"), 0, false),
    ];
    for (place, (script, time, has_usage)) in table.into_iter().enumerate() {
        let (recorded, played) = play(&gateway, vec![script], Client::Reads(Duration::ZERO));
        assert_eq!(recorded.content, "Yes.", "{place}");
        assert_eq!(recorded.finish_reason.as_deref(), Some("stop"), "{place}");
        assert_eq!(recorded.usage.is_some(), has_usage, "{place}");
        // The clock counts milliseconds, and each wait may take one more.
        let took = played.time.as_millis();
        assert!((time..time + 50).contains(&took), "{place}: {took}");
    }
}

#[test]
fn a_slow_client_receives_the_usage() {
    let gateway = TestGateway::new(|_| {});
    let script = Script::stream(&["Yes."], "stop").only(2, Then::End);
    let usage = Script::new(script.head.clone().unwrap(), vec![usage()]).cut(&[3]);
    let mut script = script;
    script.pieces.extend(usage.pieces);
    let slow = Client::Reads(Duration::from_secs(20));
    let (recorded, _) = play(&gateway, vec![script], slow);
    assert!(recorded.usage.is_some());
}

#[test]
fn an_invalid_call_ends_its_round_at_once() {
    let gateway = TestGateway::new(|_| {});
    let wrong = ADD.replace('5', "five");
    let scripts = vec![
        late(&wrong, Vec::new(), Then::Stall),
        late(ADD, Vec::new(), Then::Stall),
    ];
    let (recorded, played) = play(&gateway, scripts, Client::Reads(Duration::ZERO));
    assert_eq!(recorded.readable(), [("add", r#"{"a":5}"#)]);
    let took = played.time.as_millis();
    assert!((5_000..5_050).contains(&took), "{took}");
}
