//! Servers that do not end when the reply has ended.

use std::time::Duration;

use plaincall_gateway::axum::body::Body;
use plaincall_gateway::axum::http::Request;
use plaincall_gateway::{Mode, ModelSettings};
use plaincall_testkit::model_server::{Piece, Script, Then};
use plaincall_testkit::strict_client::{Heard, hear};
use serde_json::json;

use crate::memory::{Client, Stage};
use crate::model::request;

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

/// What a client hears, and in how many milliseconds.
fn play(stage: &Stage, scripts: Vec<Script>, client: Client) -> (Heard, u128) {
    let body = request(&json!({"stream_options": {"include_usage": true}}));
    let request = Request::post("/v1/chat/completions");
    let request = request.body(Body::from(body.to_string())).unwrap();
    let played = stage.play(request, scripts, client);
    assert_eq!(played.got.end, Some(Ok(())));
    assert_eq!(played.report.error, None);
    let heard = hear(&played.got.bytes, true);
    assert_eq!(heard.error, None);
    (heard, played.time.as_millis())
}

#[test]
fn nobody_waits_for_a_server_that_goes_on() {
    let stage = Stage::new(|_| {});
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
        let (heard, took) = play(&stage, vec![script], Client::Reads(Duration::ZERO));
        assert_eq!(heard.content, "Yes.", "{place}");
        assert_eq!(heard.finish_reason.as_deref(), Some("stop"), "{place}");
        assert_eq!(heard.usage.is_some(), has_usage, "{place}");
        // The clock counts milliseconds, and each wait may take one more.
        assert!((time..time + 50).contains(&took), "{place}: {took}");
    }
}

#[test]
fn a_client_that_reads_slowly_hears_the_usage() {
    let stage = Stage::new(|_| {});
    let script = Script::stream(&["Yes."], "stop").only(2, Then::End);
    let usage = Script::new(script.head.clone().unwrap(), vec![usage()]).cut(&[3]);
    let mut script = script;
    script.pieces.extend(usage.pieces);
    let slow = Client::Reads(Duration::from_secs(20));
    let (heard, _) = play(&stage, vec![script], slow);
    assert!(heard.usage.is_some());
}

#[test]
fn a_round_of_repair_waits_no_longer() {
    let stage = Stage::new(|config| {
        config.other_models = ModelSettings {
            mode: Mode::Checked,
            ..ModelSettings::default()
        };
    });
    let wrong = ADD.replace('5', "five");
    let scripts = vec![
        late(&wrong, Vec::new(), Then::Stall),
        late(ADD, Vec::new(), Then::Stall),
    ];
    let (heard, took) = play(&stage, scripts, Client::Reads(Duration::ZERO));
    assert_eq!(heard.readable(), [("add", r#"{"a":5}"#)]);
    assert!((10_000..10_050).contains(&took), "{took}");
}
