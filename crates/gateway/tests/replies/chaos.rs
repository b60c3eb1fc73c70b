//! Whatever the server does, the client gets one terminal event and no call that is not whole.

use plaincall_gateway::{Mode, ModelSettings};
use plaincall_testkit::soup::Random;
use serde_json::{Value, json};

use crate::cases;
use crate::model::{Stream, exchange, plan};

const TEXTS: &[&str] = &[
    "Let me ",
    "see.\n",
    "!!!GADGET_START:write\n",
    "!!!ARG:path\n",
    "a\u{1F600}b",
    "\n!!!ARG:text\n",
    "one \"two\"\n",
    "!!!GADGET_END\n",
    "!!!GADGET_START:now\n!!!GADGET_END",
    "<think>",
    "hm</think>",
    "!!!GADGET_START:add:x:y\n",
    "!!!GADGET_START:add:y\n!!!ARG:a\n5\n!!!GADGET_END",
];

fn stream(random: &mut Random) -> Stream {
    let mut stream = Stream::new();
    let texts: Vec<&str> = (0..random.below(8))
        .map(|_| TEXTS[random.below(TEXTS.len())])
        .collect();
    stream = stream.texts(texts);
    for _ in 0..random.below(4) {
        stream = match random.below(8) {
            0 => stream.done(),
            1 => stream.finish(["stop", "length", "content_filter", ""][random.below(4)]),
            2 => stream.usage(3),
            3 => stream.data("{"),
            4 => stream.data(r#"{"error":{"message":"no"}}"#),
            5 => stream.data(r#"{"choices":null}"#),
            6 => stream.thought("reasoning", "hm"),
            _ => stream.texts(["more"]),
        };
    }
    match random.below(4) {
        // A cut anywhere, also inside a character or a line.
        0 => {
            let len = random.below(stream.0.len() + 1);
            stream.0.truncate(len);
        }
        // A byte that is wrong.
        1 if !stream.0.is_empty() => {
            let at = random.below(stream.0.len());
            stream.0[at] = [0xFF, b'\n', b'\r', 0][random.below(4)];
        }
        _ => {}
    }
    stream
}

#[test]
fn one_terminal_event_whatever_comes() {
    let fields = json!({"stream_options": {"include_usage": true}});
    let plans = [Mode::Streamed, Mode::Checked].map(|mode| {
        let settings = ModelSettings {
            mode,
            ..ModelSettings::default()
        };
        plan(&fields, &settings)
    });
    for seed in cases(400) {
        let mut random = Random::new(seed);
        let streams: Vec<Stream> = (0..3).map(|_| stream(&mut random)).collect();
        let sizes: Vec<usize> = (0..=random.below(4))
            .map(|_| random.below(60) + 1)
            .collect();
        let broken = random.one_in(3);
        for plan in &plans {
            // The client checks the rules.
            let outcome = exchange(plan, &streams, &sizes, broken);
            assert!(outcome.rounds.len() <= 2);
            let whole = exchange(plan, &streams, &[usize::MAX], broken);
            assert_eq!(outcome.heard, whole.heard, "seed {seed}");
            if plan.mode() == Mode::Checked {
                for call in &outcome.heard.calls {
                    let arguments: Value = serde_json::from_str(&call.arguments).unwrap();
                    assert!(arguments.is_object());
                }
            }
        }
    }
}
