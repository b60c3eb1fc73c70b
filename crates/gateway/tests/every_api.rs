//! Properties of replies that hold in every API.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi, Flow};
use plaincall_gateway::{ArgumentMode, ModelSettings, Secret, ToolMode};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_syntax::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::{Playing, cases, divisor};
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::apis::{ALL, asked, calls, read_stream, request};
use crate::native::model::{completion, native};
use crate::replies::chunks::{reply, without_ids};
use crate::replies::model::{Stream, plan, recorded, streaming, tool_set};

/// Feeds the answers of a model server, one for each round, split at this position. Returns the client's bytes.
fn play(
    adapter: &Adapter,
    api: ClientApi,
    is_streamed: bool,
    answers: &[Vec<u8>],
    split: usize,
) -> Vec<u8> {
    let mut asked = asked(adapter, api, &request(api, &json!({"stream": is_streamed})));
    let mut bytes = Vec::new();
    for answer in answers {
        let (first, second) = answer.split_at(split.min(answer.len()));
        let _ = asked.feed(first) != Flow::Stop && asked.feed(second) != Flow::Stop;
        let end = asked.end(None);
        bytes.append(&mut asked.take());
        if end != AskEnd::Again {
            break;
        }
    }
    bytes
}

fn adapter(settings: ModelSettings) -> Adapter {
    Adapter::new(Secret::new("secret"), settings)
}

/// The reply to these streams of a model server, in each API.
fn replies(settings: &ModelSettings, streams: &[Stream]) -> [Recorded; 4] {
    let adapter = adapter(settings.clone());
    let streams: Vec<_> = streams.iter().map(|stream| stream.0.clone()).collect();
    ALL.map(|api| {
        let bytes = play(&adapter, api, true, &streams, 0);
        let mut recorded = without_ids(read_stream(api, &bytes, false));
        recorded.usage = None;
        recorded
    })
}

const ADD: &str = "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n";
const WRONG: &str = "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n";

/// Streams of a model server with everything that a stream can have, for text mode.
fn streams() -> Vec<Vec<Stream>> {
    let text = |text: &str| Stream::new().texts([text]).finish("stop").usage(9).done();
    let odd = Stream::new()
        .thought("reasoning", "H\u{1F6E0}m.")
        .texts(["<think>So", "!</think>No"])
        .thought("refusal", " way")
        .finish("length");
    let error = Stream::new()
        .texts(["I"])
        .data(r#"{"error":{"message":"no","code":7}}"#);
    vec![
        vec![text(&format!("I \u{1F6E0} add.\r\n{ADD}{ADD}Then {WRONG}"))],
        vec![text(&format!("I add.\n{WRONG}")), text(ADD)],
        vec![odd.done()],
        vec![error],
    ]
}

/// A stream of a model server with calls, and one as text.
fn native_stream() -> Stream {
    let call = json!({"index": 0, "id": "call_1", "type": "function", "function": {"name": "add", "arguments": "{\"a\":"}});
    let rest = json!({"index": 0, "function": {"arguments": " 5}"}});
    let chunk = |call: Value| json!({"choices": [{"delta": {"tool_calls": [call]}}]}).to_string();
    Stream::new()
        .texts([
            "So:\n<tool_call>{\"name\": \"now\", \"argu",
            "ments\": {}}</tool_call>\n",
        ])
        .data(&chunk(call))
        .data(&chunk(rest))
        .finish("tool_calls")
        .usage(9)
        .done()
}

#[test]
fn streams_split_at_every_position() {
    let mut splits = 0;
    let step = usize::try_from(divisor()).unwrap();
    for (settings, all) in [
        (ModelSettings::default(), streams()),
        (streaming(), streams().into_iter().take(1).collect()),
        (native(), vec![vec![native_stream()]]),
    ] {
        let is_native = settings.mode == ToolMode::Native;
        let adapter = adapter(settings);
        for rounds in all {
            let answers: Vec<_> = rounds.iter().map(|stream| stream.0.clone()).collect();
            for api in ALL {
                let whole = play(&adapter, api, true, &answers, 0);
                let recorded = read_stream(api, &whole, false);
                assert!(!is_native || recorded.calls.len() == 2, "{recorded:?}");
                let longest = answers.iter().map(Vec::len).max().unwrap();
                for split in (1..longest).step_by(step) {
                    let same = play(&adapter, api, true, &answers, split);
                    assert!(same == whole, "{api:?}, split at {split}");
                    splits += 1;
                }
            }
        }
    }
    assert!(splits * step > 8000, "{splits}");
}

/// Random replies have the same texts and calls in each API.
#[test]
fn random_replies_are_equal() {
    let mut found = 0;
    let seeds = cases("GATEWAY", 40);
    for seed in seeds.clone() {
        let _playing = Playing::new("GATEWAY", seed);
        let mut random = Random::new(seed);
        let with_escapes = random.one_in(2);
        let text = reply(&mut random, with_escapes);
        let reason = if random.one_in(3) { "length" } else { "stop" };
        for mut settings in [ModelSettings::default(), streaming()] {
            for dialect in [Dialect::block(), Dialect::emoji()] {
                settings.dialect = dialect;
                let plan = plan(&json!({}), &settings);
                let chat = without_ids(recorded(&plan, &[&text], reason).recorded);
                found += chat.calls.len();
                let stream = Stream::new().texts([&*text]).finish(reason).done();
                let replies = replies(&settings, &vec![stream; 4]);
                // Ollama's API has no unreadable calls.
                let mut checked = settings.clone();
                checked.arguments = ArgumentMode::Checked;
                let plan = self::plan(&json!({}), &checked);
                let checked = without_ids(recorded(&plan, &[&text], reason).recorded);
                for (mut reply, api) in replies.into_iter().zip(ALL) {
                    if reply.error.is_some() {
                        reply.finish_reason = None;
                    }
                    let mut expected = match api {
                        ClientApi::Ollama => checked.clone(),
                        _ => chat.clone(),
                    };
                    expected.usage = None;
                    assert_eq!(reply, expected, "{api:?}: {text:?}");
                }
            }
        }
    }
    assert!(found > seeds.count(), "{found}");
}

/// Reasoning inside a call whose arguments are streamed does not truncate them, nor does a refusal.
#[test]
fn texts_inside_a_call_wait_for_its_end() {
    for (field, text) in [("reasoning_content", "Hm."), ("refusal", "No.")] {
        for at in 0..=ADD.len() {
            let (begin, end) = ADD.split_at(at);
            let stream = Stream::new()
                .texts([begin])
                .thought(field, text)
                .texts([end])
                .finish("stop")
                .done();
            for (reply, api) in replies(&streaming(), &[stream]).into_iter().zip(ALL) {
                let calls = reply.readable();
                assert_eq!(calls, [("add", r#"{"a":5}"#)], "{api:?}, {field} at {at}");
                if field == "reasoning_content" {
                    assert_eq!(reply.reasoning, text);
                }
            }
        }
    }
}

/// A complete answer in place of a stream has the names of the model server.
#[test]
fn a_complete_answer_in_place_of_a_stream() {
    let adapter = adapter(ModelSettings::default());
    let answer = completion(&json!({"role": "assistant", "content": ADD}), "stop");
    for api in ALL {
        let mut asked = asked(
            &adapter,
            api,
            &request(api, &json!({"stream": true, "model": "asked"})),
        );
        asked.begin_answer(false);
        let _ = asked.feed(&answer);
        assert_eq!(asked.end(None), AskEnd::Done);
        let bytes = asked.take();
        assert_eq!(read_stream(api, &bytes, false).readable().len(), 1);
        let text = String::from_utf8(bytes).unwrap();
        assert!(!text.contains("asked"), "{text}");
        assert!(text.contains(r#""model":"m""#), "{text}");
    }
}

#[test]
fn an_answer_over_the_limit() {
    let adapter = adapter(ModelSettings::default());
    for api in ALL {
        let mut asked = asked(&adapter, api, &request(api, &json!({})));
        asked.begin_answer(false);
        let text = completion(&json!({"role": "assistant", "content": "x"}), "stop");
        let mut piece = vec![b' '; (64 << 20) - text.len()];
        piece.extend(&text);
        assert_eq!(asked.feed(&piece), Flow::Continue);
        assert_eq!(asked.feed(b"\n"), Flow::Stop);
        let AskEnd::Refused(error) = asked.end(None) else {
            panic!("{api:?}");
        };
        let message = "the model server's answer exceeds 67108864 bytes";
        assert_eq!((error.status, error.message()), (502, message));
    }
}

/// A random call: the name of a tool, and arguments that both syntaxes can express.
fn call(random: &mut Random) -> (&'static str, Value) {
    const TEXTS: [&str; 6] = [
        "a.txt",
        "one \"two\"\\",
        "5",
        "\u{1F600}",
        "[1]",
        "{\"a\": 1}",
    ];
    let number = i64::try_from(random.below(2000)).unwrap() - 1000;
    let text = TEXTS[random.below(TEXTS.len())];
    match random.below(5) {
        0 => ("add", json!({"a": number})),
        1 => ("add", json!({"a": number, "b": -number})),
        2 => ("write", json!({"path": "a.txt", "text": text})),
        3 => (
            "search",
            json!({"query": text, "tags": [text, "x"], "range": {"from": 0.5, "to": null}, "deep": number > 0}),
        ),
        _ => ("now", json!({})),
    }
}

/// The same calls in both syntaxes are the same calls in each API, streamed and complete, in their order.
#[test]
fn both_syntaxes_give_equal_calls() {
    let dialects = [Dialect::block(), Dialect::emoji()];
    for seed in cases("GATEWAY", 60) {
        let _playing = Playing::new("GATEWAY", seed);
        let mut random = Random::new(seed);
        let expected: Vec<_> = (0..=random.below(4)).map(|_| call(&mut random)).collect();
        for dialect in &dialects {
            for mut settings in [ModelSettings::default(), streaming()] {
                settings.dialect = dialect.clone();
                let plan = plan(&json!({}), &settings);
                let rendered = expected.iter().map(|(name, arguments)| {
                    let call = JsonCall::new(name, arguments.as_object().unwrap());
                    render_call(&call, tool_set().get(name), plan.dialect()).unwrap()
                });
                let text = format!("So:\n{}Done.", rendered.collect::<Vec<_>>().join("then\n"));
                let adapter = adapter(settings);
                let message = json!({"role": "assistant", "content": text});
                let stream = Stream::new().texts([&*text]).finish("stop").done().0;
                for (is_streamed, answer) in [(true, stream), (false, completion(&message, "stop"))]
                {
                    for api in ALL {
                        let bytes =
                            play(&adapter, api, is_streamed, std::slice::from_ref(&answer), 0);
                        let found = calls(api, &bytes, is_streamed);
                        let found: Vec<_> = found.iter().map(|(n, a)| (&**n, a.clone())).collect();
                        assert_eq!(found, expected, "{api:?}: {text}");
                    }
                }
            }
        }
    }
}
