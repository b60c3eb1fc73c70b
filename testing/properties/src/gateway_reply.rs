use plaincall_gateway::translation::{CompleteResponse, Exchange, Next, Reply, ReplyPlan};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_syntax::{EventKind, Parser};
use plaincall_testkit::strict_client::Recorded;
use plaincall_testkit::untrusted::{chunks, markers_in};
use plaincall_wire::openai::{ChatCompletion, read_error};
use plaincall_wire::sse::Limits;
use serde_json::{Value, json};

use std::cell::RefCell;
use std::collections::HashMap;
use std::ops::Range;

use crate::model::{Outcome, Stream, exchange, plan};
use crate::settings::{fields, settings};

/// The reasons with which a text ends.
const REASONS: &[&str] = &["stop", "length", "content_filter", "tool_calls", "eos", ""];

/// For all output of a model server and all chunk boundaries: the protocol is followed, there is one terminal event, and no
/// marker is in the text (`spec/gateway.md` 3 to 6).
///
/// Five bytes select the settings, the request, the form of the reply and the chunk sizes; the rest is
/// the reply, with a NUL between two rounds: bytes of an event stream, or text.
pub fn gateway_reply(data: &[u8]) {
    let Some(([one, two, form, first, second], rest)) = data.split_first_chunk::<5>() else {
        return;
    };
    let settings = settings(*one);
    let plan = known_plan(*one, *two);
    let sizes = [usize::from(*first % 61) + 1, usize::from(*second % 7) + 1];
    if form & 1 == 1 {
        let streams = rest.split(|byte| *byte == 0);
        let streams: Vec<Stream> = streams.map(|bytes| Stream(bytes.to_vec())).collect();
        check_stream(&plan, &rounds(streams), &sizes, form & 2 == 2);
    } else {
        let reason = REASONS[usize::from(form >> 1) % REASONS.len()];
        let text = String::from_utf8_lossy(rest);
        let texts: Vec<String> = text.split('\0').map(|text| spelled(text, &plan)).collect();
        check_texts(&plan, &settings, &rounds(texts), reason, &sizes);
    }
}

/// Returns the plan of these settings and this request, and keeps it, because it is most of the work.
fn known_plan(one: u8, two: u8) -> ReplyPlan {
    thread_local! {
        static KNOWN: RefCell<HashMap<(u8, u8), ReplyPlan>> = RefCell::default();
    }
    let new = || plan(&fields(two), &settings(one));
    KNOWN.with_borrow_mut(|known| known.entry((one, two)).or_insert_with(new).clone())
}

/// Repeats the last one, so that there is one for each possible round.
fn rounds<T: Clone>(mut given: Vec<T>) -> Vec<T> {
    let last = given.last().cloned();
    given.extend(last.into_iter().cycle().take(4));
    given
}

/// Returns the text with the markers of the dialect in place of control characters, so that the fuzzer need not find them.
fn spelled(text: &str, plan: &ReplyPlan) -> String {
    let markers = plan.dialect().markers().expect("a dialect that works");
    let mut spelled = String::new();
    for c in text.chars() {
        match (c as usize).checked_sub(1).and_then(|at| markers.get(at)) {
            Some(marker) if c < '\t' => spelled.push_str(&marker.text),
            _ => spelled.push(c),
        }
    }
    spelled
}

fn check_stream(plan: &ReplyPlan, streams: &[Stream], sizes: &[usize], broken: bool) {
    let whole = exchange(plan, streams, &[usize::MAX], broken);
    let cut = exchange(plan, streams, sizes, broken);
    assert_eq!(
        cut.recorded, whole.recorded,
        "the pieces of the stream matter"
    );
    check_recorded(&whole, plan);
    // Without a backslash nothing is escaped.
    if !streams.iter().any(|stream| stream.0.contains(&b'\\')) {
        assert_eq!(keyed_markers(&whole.recorded.content, plan), 0);
    }
    for stream in streams {
        let _ = read_error(&stream.0);
    }
}

fn check_texts(
    plan: &ReplyPlan,
    settings: &ModelSettings,
    texts: &[String],
    reason: &str,
    sizes: &[usize],
) {
    let streams = |sizes: &[usize]| -> Vec<Stream> {
        let stream = |text: &String| Stream::new().texts(chunks(text, sizes));
        let stream = |text| stream(text).finish(reason).usage(3).done();
        texts.iter().map(stream).collect()
    };
    let whole = exchange(plan, &streams(&[usize::MAX]), &[usize::MAX], false);
    let cut = exchange(plan, &streams(sizes), &[usize::MAX], false);
    assert_eq!(
        cut.recorded, whole.recorded,
        "the pieces of the text matter"
    );
    check_recorded(&whole, plan);
    // A marker with a key is one that the model has escaped.
    let escapes: usize = texts.iter().map(|text| escapes(text, plan)).sum();
    let markers = keyed_markers(&whole.recorded.content, plan);
    assert!(
        markers <= escapes,
        "{markers} markers in {:?}, and {escapes} escapes",
        whole.recorded.content
    );
    check_whole(plan, settings, texts, reason, &whole.recorded);
}

/// Counts the markers with a key. Others may be in any text.
fn keyed_markers(content: &str, plan: &ReplyPlan) -> usize {
    if !plan.dialect().is_keyed() {
        return 0;
    }
    let tags = plan.dialect().reasoning_markers().unwrap_or_default();
    let markers = markers_in(content, plan.dialect()).into_iter();
    let is_tag = |at: &Range<usize>| tags.contains(&&content[at.clone()]);
    markers.filter(|at| !is_tag(at)).count()
}

/// Returns how many markers the model may have escaped in its text. One backslash may escape several that end alike.
fn escapes(text: &str, plan: &ReplyPlan) -> usize {
    let mut parser = Parser::new(plan.dialect()).expect("a dialect that works");
    let is_escape =
        |kind: &EventKind<'_>| matches!(kind, EventKind::Ignored(text) if **text == *"\\");
    let mut escapes = parser
        .feed(text)
        .filter(|event| is_escape(&event.kind))
        .count();
    escapes += parser
        .finish()
        .filter(|event| is_escape(&event.kind))
        .count();
    escapes
        * plan
            .dialect()
            .markers()
            .expect("a dialect that works")
            .len()
}

fn check_recorded(outcome: &Outcome, plan: &ReplyPlan) {
    let counts = outcome.counts;
    for call in &outcome.recorded.calls {
        match serde_json::from_str::<Value>(&call.arguments) {
            Ok(value) => assert!(value.is_object(), "{}", call.arguments),
            Err(_) => assert!(plan.streams_arguments(), "{}", call.arguments),
        }
        if !plan.streams_arguments() {
            assert!(plan.offered_tools().get(&call.name).is_some());
        }
    }
    let shown = outcome.recorded.calls.len() as u64;
    if outcome.recorded.error.is_none() && plan.streams_arguments() {
        assert_eq!(
            shown,
            counts.calls + counts.invalid_calls + counts.truncated_calls
        );
    }
    assert!(outcome.recorded.readable().len() as u64 <= counts.calls);
}

/// Checks that the same texts as complete responses give the same reply.
fn check_whole(
    plan: &ReplyPlan,
    settings: &ModelSettings,
    texts: &[String],
    reason: &str,
    recorded: &Recorded,
) {
    let whole = CompleteResponse::new("chatcmpl-0", 1);
    let reply = Reply::new(plan.clone(), Secret::new("seed"), Box::new(whole));
    let mut exchange = Exchange::new(reply, Limits::default());
    for (round, text) in texts.iter().enumerate() {
        let body = json!({"id": "x", "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": reason}]});
        let body = body.to_string();
        let completion: ChatCompletion<'_> =
            plaincall_wire::read(body.as_bytes()).expect("a completion");
        match exchange.whole(completion) {
            Next::Repair(_) => assert!(round < settings.repair_rounds as usize),
            Next::Failed(error) => {
                assert_eq!(recorded.error.as_deref(), Some(error.message()));
                return;
            }
            _ => {
                let answer: Value = serde_json::from_slice(&exchange.take()).expect("JSON");
                let choice = &answer["choices"][0];
                let message = &choice["message"];
                let text = |name: &str| message[name].as_str().unwrap_or_default();
                assert_eq!(text("content"), recorded.content);
                assert_eq!(text("reasoning_content"), recorded.reasoning);
                assert_eq!(
                    choice["finish_reason"].as_str(),
                    recorded.finish_reason.as_deref()
                );
                let calls = message["tool_calls"]
                    .as_array()
                    .cloned()
                    .unwrap_or_default();
                assert_eq!(calls.len(), recorded.calls.len());
                for (call, recorded) in calls.iter().zip(&recorded.calls) {
                    assert_eq!(call["id"], recorded.id);
                    assert_eq!(call["function"]["name"], recorded.name);
                    assert_eq!(call["function"]["arguments"], recorded.arguments);
                }
                return;
            }
        }
    }
}
