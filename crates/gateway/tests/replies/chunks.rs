//! For any chunks of a reply, the calls are those of the whole text.

use plaincall_gateway::ModelSettings;
use plaincall_gateway::translation::ReplyPlan;
use plaincall_reply::Stop;
use plaincall_syntax::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::cases;
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::replies::expected;
use crate::replies::model::{Stream, exchange, plan, recorded, streaming, tool_set};

fn check_calls(text: &str, recorded: &Recorded, plan: &ReplyPlan, stop: Stop) {
    let calls = |text: &str| expected::calls(text, plan.dialect(), stop, tool_set());
    if plan.streams_arguments() {
        expected::check(recorded, &calls(text), text);
    } else {
        expected::check_rounds(recorded, [text], calls);
    }
}

/// Returns the characters of a text at which it is split.
fn pieces<'t>(text: &'t str, cuts: &[usize]) -> Vec<&'t str> {
    let mut pieces = Vec::new();
    let mut from = 0;
    for &to in cuts.iter().chain([&text.len()]) {
        pieces.push(&text[from..to]);
        from = to;
    }
    pieces
}

pub(crate) fn without_ids(mut recorded: Recorded) -> Recorded {
    for call in &mut recorded.calls {
        call.id.clear();
        // The reason of an invalid call ends with a proof for its id.
        let arguments = expected::without_reason(&call.arguments);
        call.arguments.truncate(arguments.len());
    }
    recorded
}

const REPLIES: &[&str] = &[
    "Hello, world.\n",
    " \n ",
    "!!!GADGET_<think></think>END\n!!!ARG<think>x</think>:",
    "Let me see.\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!ARG:b\n007\n!!!GADGET_END\nand\n!!!GADGET_START:now\n!!!GADGET_END\n",
    "!!!GADGET_START:search\n!!!ARG:query\nx \"y\"\n\\n!!!ARG\\:\n!!!ARG:tags/0\na\n!!!ARG:tags/1\nb\n!!!ARG:range/from\n1.50\n!!!ARG:range/to\nnull\n!!!GADGET_END",
    "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END\n!!!GADGET_START:nothing\n!!!GADGET_END\nend",
    "<think>!!!GADGET_START:now\n!!!GADGET_END</think>\n\nSo:\n!!!GADGET_START:now\n!!!GADGET_END",
    "a !!!GADGET_END b !!!ARG: c !!!GADGET_START: d </think> e !!!GADGET_EN\\D f",
    "!!!GADGET_!!!GADGET_ENDEND",
    "!!!GADGET_START:write:w\n!!!ARG:path\na\n!!!GADGET_START:add:a:w\n!!!ARG:a\n1\n!!!GADGET_END",
    "!!!GADGET_START:write:w\n!!!ARG:path\na\n!!!GADGET_START:write:w\n!!!ARG:path\nb\n!!!GADGET_END\n!!!GADGET_START:now:n:x\n!!!GADGET_END",
    "!!!GADGET_START:write\n!!!ARG:text\nno path\n!!!ARG:oops\n1\n!!!GADGET_END",
    "!!!GADGET_START:write\n!!!ARG:path\n\u{1F600}\u{301}\n!!!ARG:text\nnot closed",
];

/// The same for the emoji syntax, where the tool defines the form of the call.
const EMOJI_REPLIES: &[&str] = &[
    "Let me see.\n🛠️[add 5 007]🛠️[/end]\n and 🛠️[now]🛠️[/end]",
    "🛠️[write a.txt\tone two ]🛠️[/end]🛠️[search]{\"query\": \"🛠️\\[/end]\"}🛠️[/end]",
    "🛠️[add five]🛠️[/end]🛠️[nothing]🛠️[/end] 🛠️[/end] 🛠[now]🛠[/end]",
    "<think>🛠️[now]🛠️[/end]</think>\n🛠️[write a",
    "🛠️[write a]🛠️[/end]🛠️[add 1",
    "🛠️[add 1]\nnot closed",
];

#[test]
fn every_cut_gives_the_same() {
    for settings in [ModelSettings::default(), streaming()] {
        cut_everywhere(&settings, REPLIES);
    }
}

#[test]
fn every_cut_of_emoji_calls_gives_the_same() {
    for mut settings in [ModelSettings::default(), streaming()] {
        settings.dialect = Dialect::emoji();
        cut_everywhere(&settings, EMOJI_REPLIES);
    }
}

fn cut_everywhere(settings: &ModelSettings, replies: &[&str]) {
    let plan = plan(&json!({}), settings);
    for text in replies {
        for (reason, stop) in [("stop", Stop::Natural), ("length", Stop::Broken)] {
            let whole = recorded(&plan, &[text], reason).recorded;
            check_calls(text, &whole, &plan, stop);
            let edges: Vec<usize> = (1..text.len())
                .filter(|&at| text.is_char_boundary(at))
                .collect();
            let letters = recorded(&plan, &pieces(text, &edges), reason).recorded;
            assert_eq!(letters, whole, "{text:?} letter by letter");
            for &at in &edges {
                let cut = recorded(&plan, &pieces(text, &[at]), reason).recorded;
                assert_eq!(cut, whole, "{text:?} cut at {at}");
            }
        }
    }
}

/// A random reply: valid and almost valid calls, texts, markers at unusual places.
#[allow(clippy::too_many_lines, reason = "most of them are lists")]
pub(crate) fn reply(random: &mut Random, with_escapes: bool) -> String {
    const ODD: &[&str] = &[
        "!!!GADGET_START:",
        "!!!GADGET_END",
        "!!!ARG:",
        "!!!GADGET_",
        "!!!",
        "END",
        "ARG:",
        "\n",
        "\n",
        " ",
        "text",
        "<think>",
        "</think>",
        "```\n",
        "\u{1F6E0}\u{FE0F}[",
        "a:b",
        "!!!GADGET_START:now\n",
        "\r\n",
        "\u{E9}",
    ];
    const NAMES: &[&str] = &[
        "add", "write", "search", "now", "add", "write", "Add", "other",
    ];
    const SUFFIXES: &[&str] = &["", "", "", "", ":x", ":y", ":x:y", ":z:x,y", ":z:q"];
    const POINTERS: &[&str] = &[
        "a",
        "b",
        "a",
        "path",
        "text",
        "path",
        "query",
        "tags/0",
        "tags/1",
        "range/from",
        "range/to",
        "deep",
        "tags",
        "c",
    ];
    const VALUES: &[&str] = &[
        "5",
        "007",
        "-1",
        "1.5",
        "true",
        "null",
        "x",
        "one\ntwo",
        "",
        "[\"a\"]",
        "{}",
        "\"q\" \\ \t",
        "\u{1F600}",
        "1e3",
        " a ",
        "!!!ARG",
        "12345678901234567890",
    ];
    const RIGHT: &[&str] = &[
        "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!ARG:b\n-7\n!!!GADGET_END",
        "!!!GADGET_START:write:w\n!!!ARG:path\na\n!!!ARG:text\none\n\"two\"\n\n!!!GADGET_END\n",
        "!!!GADGET_START:search\n!!!ARG:tags/0\nx\n!!!ARG:query\ny\n!!!ARG:tags/1\nz\n!!!GADGET_END",
        "\n!!!GADGET_START:now\n!!!GADGET_END\n",
    ];
    let mut text = String::new();
    for _ in 0..=random.below(5) {
        match random.below(6) {
            4 | 5 => text.push_str(RIGHT[random.below(RIGHT.len())]),
            0 => text.push_str(["I see.", "Let me look.\n", "\n\n", "Hm"][random.below(4)]),
            1 => (0..=random.below(4)).for_each(|_| text.push_str(ODD[random.below(ODD.len())])),
            _ => {
                text.push_str("\n!!!GADGET_START:");
                text.push_str(NAMES[random.below(NAMES.len())]);
                text.push_str(SUFFIXES[random.below(SUFFIXES.len())]);
                text.push('\n');
                for _ in 0..random.below(4) {
                    text.push_str("!!!ARG:");
                    text.push_str(POINTERS[random.below(POINTERS.len())]);
                    text.push('\n');
                    text.push_str(VALUES[random.below(VALUES.len())]);
                    if with_escapes && random.one_in(4) {
                        text.push_str(
                            [
                                "!!!ARG\\:",
                                "!!!GADGET_EN\\D\n",
                                "\\",
                                "!!!GADGET_START\\\\:x",
                            ][random.below(4)],
                        );
                    }
                    if !random.one_in(8) {
                        text.push('\n');
                    }
                }
                if !random.one_in(8) {
                    text.push_str("!!!GADGET_END");
                }
                if random.one_in(2) {
                    text.push('\n');
                }
            }
        }
    }
    text
}

#[test]
fn random_replies_give_the_calls_of_the_document() {
    let settings = [streaming(), ModelSettings::default()];
    let [plan, checked] = settings.map(|settings| plan(&json!({}), &settings));
    let mut closed = 0;
    let cases = cases("GATEWAY", 300);
    let count = cases.end - cases.start;
    for seed in cases {
        let mut random = Random::new(seed);
        let with_escapes = random.one_in(2);
        let text = reply(&mut random, with_escapes);
        let (reason, stop) = if random.one_in(3) {
            ("length", Stop::Broken)
        } else {
            ("stop", Stop::Natural)
        };
        let whole = recorded(&plan, &[&text], reason).recorded;
        check_calls(&text, &whole, &plan, stop);
        closed += whole.readable().len() as u64;
        // A checked reply has the same calls up to the first invalid one, to the last digit.
        let sent = recorded(&checked, &[&text], reason).recorded;
        check_calls(&text, &sent, &checked, stop);
        let edges: Vec<usize> = (1..text.len())
            .filter(|&at| text.is_char_boundary(at))
            .collect();
        let share = random.below(6) + 1;
        let cuts: Vec<usize> = edges.into_iter().filter(|_| random.one_in(share)).collect();
        let cut = recorded(&plan, &pieces(&text, &cuts), reason).recorded;
        assert_eq!(
            without_ids(cut),
            without_ids(whole.clone()),
            "seed {seed}: {text:?}"
        );
        let cut = recorded(&checked, &pieces(&text, &cuts), reason).recorded;
        assert_eq!(without_ids(cut), without_ids(sent), "seed {seed}: {text:?}");
        for call in &whole.calls {
            let value: Result<Value, _> = serde_json::from_str(&call.arguments);
            assert!(value.is_err() || value.unwrap().is_object());
        }
    }
    assert!(
        closed > count / 3 || count < 100,
        "the generator writes calls that are right: {closed}"
    );
}

/// A server that counts UTF-16 units splits the emoji of a marker, and writes each half as an escape.
#[test]
fn an_emoji_that_was_cut_between_two_chunks() {
    let settings = crate::settings(|settings| {
        settings.dialect = Dialect::emoji();
    });
    let plan = plan(&json!({}), &settings);
    let chunk = |content: &str| {
        format!(
            r#"{{"choices":[{{"index":0,"delta":{{"content":"{content}"}},"finish_reason":null}}]}}"#
        )
    };
    for halves in [
        [
            "So: \\ud83d",
            "\\udee0\\ufe0f[now]\\ud83d",
            "\\udee0\\ufe0f[/end]",
        ],
        ["So: \\uD83D", "\\uDEE0[now]\\uD83D", "\\uDEE0[/end]"],
    ] {
        let stream = halves
            .iter()
            .fold(Stream::new(), |stream, half| stream.data(&chunk(half)));
        let recorded = exchange(&plan, &[stream.finish("stop").done()], &[7], false).recorded;
        assert_eq!(recorded.calls.len(), 1, "{recorded:?}");
        assert_eq!(recorded.calls[0].name, "now");
    }
    // An unpaired half costs one character, not the reply.
    let stream = Stream::new()
        .data(&chunk("a\\ud83db"))
        .finish("stop")
        .done();
    let recorded = exchange(&plan, &[stream], &[7], false).recorded;
    assert_eq!(recorded.content, "a\u{fffd}b");
}
