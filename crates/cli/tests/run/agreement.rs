//! `check` reports the calls that `run` rejects, as far as the text and the tools show it.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::fs;

use plaincall::Dialect;
use plaincall_reply::Document;
use plaincall_testkit::cases::cases;
use plaincall_testkit::schema_calls::Choices;
use serde_json::Value;

use crate::run::scene::Scene;

const TOOLS: &str = r#"
[tools.look]
effect = "read"
parameters = { text = "string?", count = "integer?" }
body = "text"
positional = ["count"]
command = ["true"]

[tools.save]
effect = "write"
parameters = { text = "string?", count = "integer?" }
body = "text"
positional = ["count"]
command = ["true"]

[tools.undeclared]
parameters = { text = "string" }
command = ["true"]
"#;

/// Diagnostics of `check` that are warnings, although a run without a terminal rejects the call.
const REJECTED_WARNINGS: [&str; 2] = ["unknown_id", "end_marker_in_value"];

/// Returns the indices of the calls that the run rejected.
fn rejected(scene: &Scene) -> BTreeSet<u64> {
    let ended = scene.run(&["--json", "--yes"]);
    let lines = ended.stdout.lines().map(|line| {
        let line: Value = serde_json::from_str(line).unwrap();
        line
    });
    let is_rejected = |line: &Value| line["event"] == "result" && line["status"] == "rejected";
    let rejected = lines.filter(is_rejected);
    rejected.filter_map(|line| line["call"].as_u64()).collect()
}

/// Returns the positions of the calls that `check` reports as rejected, among the calls that a run reads.
fn reported(scene: &Scene, text: &str) -> BTreeSet<u64> {
    let arguments = [
        "check",
        "reply.txt",
        "--tools",
        "tools.toml",
        "--format",
        "json",
    ];
    let ended = scene.plaincall(&arguments).output().unwrap();
    let report: Value =
        serde_json::from_slice(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {ended:?}"));
    let [open, close] = Dialect::THINK;
    let document = Document::parse(text, &Dialect::auto().leading_reasoning(open, close)).unwrap();
    let calls: Vec<_> = document.calls().map(|call| call.span).collect();
    let in_reasoning = |at: u64| {
        document.segments.iter().any(|segment| {
            let span = segment.span();
            matches!(
                segment,
                plaincall_reply::document::Segment::Reasoning { .. }
            ) && (span.start as u64..span.end as u64).contains(&at)
        })
    };
    let mut reported = BTreeSet::new();
    for found in report["diagnostics"].as_array().unwrap() {
        let code = found["code"].as_str().unwrap();
        if found["severity"] != "error" && !REJECTED_WARNINGS.contains(&code) {
            continue;
        }
        let at = found["span"][0].as_u64().unwrap();
        // The calls before it are reported too.
        if code == "stray_reasoning_close" {
            continue;
        }
        let of = calls
            .iter()
            .rposition(|span| span.start as u64 <= at && at <= span.end as u64);
        // Errors in reasoning do not matter to a run.
        if !in_reasoning(at) {
            let call = of.unwrap_or_else(|| panic!("{code} at {at} is in no call of {text:?}"));
            reported.insert(call as u64);
        }
    }
    reported
}

/// Runs and checks a text. Returns the indices of the rejected calls.
#[track_caller]
fn check(scene: &Scene, text: &str) -> BTreeSet<u64> {
    fs::write(scene.path("reply.txt"), text).unwrap();
    let (rejected, reported) = (rejected(scene), reported(scene, text));
    assert_eq!(
        rejected, reported,
        "rejected by run, reported by check:\n{text}"
    );
    rejected
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn check_reports_what_run_rejects() {
    let scene = Scene::with_tools("", TOOLS);
    let arg = "!!!ARG:text\n";
    let end = "!!!GADGET_END\n";
    let call = |header: &str| format!("!!!GADGET_START:{header}\n{arg}x\n");
    let look = |header: &str| call(&format!("look:{header}"));
    let save = |header: &str| call(&format!("save:{header}"));
    for (text, expected) in [
        (format!("{}{end}{}{end}", look("a"), save("b")), &[][..]),
        ("No call.".to_owned(), &[]),
        // The end of a call.
        (save("a"), &[0]),
        (look("a"), &[]),
        (call("undeclared:a"), &[0]),
        (format!("{}{}{end}", save("a"), save("b")), &[0, 1]),
        (format!("{}{}{end}", save("a"), look("b")), &[0]),
        (format!("{}{}{end}", look("a"), save("b")), &[]),
        (
            format!("{}{}{}{end}", save("a"), look("b"), save("c")),
            &[0, 2],
        ),
        ("🛠️[save 1]\nx".to_owned(), &[0]),
        ("🛠️[look 1]\nx".to_owned(), &[0]),
        ("🛠️[look 1]\nx🛠️[/end]🛠️[save 1]\nx🛠️[/end]".to_owned(), &[]),
        // Values that contain markers or near misses.
        (format!("{}!!!GADGT_END\nProse.\n{end}", save("a")), &[0]),
        (format!("{}!!!gadget_end\nProse.\n{end}", look("a")), &[0]),
        (
            format!("{}！！！ＧＡＤＧＥＴ＿ＥＮＤ\n{end}", save("a")),
            &[0],
        ),
        (format!("{}see !!!gadget_end\n{end}", save("a")), &[]),
        (format!("{}see !!!ARG: there\n", look("a")), &[0]),
        (format!("{}!!!gadget_start:x\n", look("a")), &[0]),
        ("🛠️[save 1]\nx\n🔧[/end]\n🛠️[/end]".to_owned(), &[0]),
        ("🛠️[save 1]\nx\n🛠️[look 2]\ny🛠️[/end]".to_owned(), &[0]),
        // A truncated pointer line, and arguments.
        ("!!!GADGET_START:look:a\n!!!ARG:te".to_owned(), &[0]),
        (
            "!!!GADGET_START:look:a\n!!!ARG:count\nmany\n!!!GADGET_END\n".to_owned(),
            &[0],
        ),
        (
            "!!!GADGET_START:look:a\n!!!ARG:other\n1\n!!!GADGET_END\n".to_owned(),
            &[0],
        ),
        (
            "!!!GADGET_START:look:a\n{\"text\": 1}\n!!!GADGET_END\n".to_owned(),
            &[0],
        ),
        (format!("{}{end}", call("lok:a")), &[0]),
        (
            "!!!GADGET_START:undeclared:a\n!!!GADGET_END\n".to_owned(),
            &[0],
        ),
        // Ids and dependencies.
        (format!("{}{end}{}{end}", look("a"), look("a")), &[1]),
        (format!("{}{end}", look("a:a")), &[0]),
        (format!("{}{end}{}{end}", look("a:b"), look("b:a")), &[0, 1]),
        (
            format!(
                "{}{end}{}{end}{}{end}",
                look("a:b"),
                look("b:a"),
                look("c:a")
            ),
            &[0, 1],
        ),
        (format!("{}{end}", look("a:missing")), &[0]),
        (format!("{}{end}{}{end}", look("a:b"), look("b")), &[]),
        (
            format!("{}{end}{}{end}", call("lok:a:b"), look("b:a")),
            &[0],
        ),
        (
            format!(
                "{}{end}!!!GADGET_START:look:b:a\n!!!ARG:{arg}{end}",
                look("a:b")
            ),
            &[1],
        ),
        // Reasoning.
        (
            format!("<think>{}{end}</think>{}{end}", save("a:a"), look("b")),
            &[],
        ),
        (
            format!("<think>{}</think>\n{}{end}", save("a"), look("b")),
            &[],
        ),
        (
            format!("{}{end}</think>{}{end}", look("a"), look("b")),
            &[0],
        ),
        (
            format!(
                "{}{end}So <think>{}{end}</think>{}{end}",
                look("a"),
                look("b"),
                look("c")
            ),
            &[1],
        ),
        (format!("It writes <think>.\n{}{end}", look("a")), &[]),
        // Other formats are near misses and reject nothing.
        (
            format!(
                "<tool_call>{{\"name\": \"save\"}}</tool_call>\n{}{end}",
                look("a")
            ),
            &[],
        ),
        (
            format!(
                "{}<tool_call>{{\"name\": \"save\", \"arguments\": {{}}}}\n{end}",
                save("a")
            ),
            &[],
        ),
    ] {
        let expected: BTreeSet<u64> = expected.iter().copied().collect();
        assert_eq!(check(&scene, &text), expected, "{text}");
    }
}

/// The setting of a tools file for calls without an end marker applies to both.
#[test]
fn check_reports_what_run_rejects_where_unclosed_calls_run() {
    let tools = format!("[run]\nunclosed = \"run\"\n{TOOLS}");
    let scene = Scene::with_tools("", tools);
    let save = |id: &str| format!("!!!GADGET_START:save:{id}\n!!!ARG:text\nx\n");
    for (text, expected) in [
        (format!("{}{}", save("a"), save("b")), &[][..]),
        ("🛠️[save 1]\nx".to_owned(), &[]),
        (format!("{}see !!!ARG: there\n", save("a")), &[0]),
    ] {
        let expected: BTreeSet<u64> = expected.iter().copied().collect();
        assert_eq!(check(&scene, &text), expected, "{text}");
    }
}

const HEADERS: &[&str] = &[
    "look:a",
    "look:b:a",
    "look:c:b",
    "look",
    "save:a",
    "save:b",
    "save:b:c",
    "save:c:a,b",
    "save",
    "undeclared:d",
    "look:a:a",
    "look:d:missing",
    "lok:e",
    "look:d:b",
];
const VALUES: &[&str] = &[
    "x\n",
    "x\n",
    "1\n",
    "\n",
    "!!!gadget_end\n",
    "see !!!ARG:y\n",
    "!!!GADGT_END\nx\n",
    "</think>\n",
    "<think>\n",
    "<tool_call>{}\n",
    "!!! ARG:y\n",
    "x",
];
const POINTERS: &[&str] = &["text", "text", "text", "count", "other", "text"];
const ENDS: &[&str] = &[
    "!!!GADGET_END\n",
    "!!!GADGET_END\n",
    "!!!GADGET_END\n",
    "",
    "!!!gadget_end\n",
];
const BETWEEN: &[&str] = &[
    "",
    "",
    "",
    "So.\n",
    "</think>\n",
    "<think>\n",
    "[TOOL_CALLS] [{}]\n",
];
const EMOJI: &[&str] = &[
    "🛠️[look 1]\nx🛠️[/end]\n",
    "🛠️[save 1]\nx🛠️[/end]\n",
    "🛠️[save 1]\nx\n",
    "🛠️[lok]🛠️[/end]\n",
    "🛠️[look many]🛠️[/end]\n",
    "🛠️[save 1]\n🛠 [/end]\n🛠️[/end]\n",
    "🛠️[look]🚀[/end]\n",
    "</think>\n",
    "So.\n",
];

fn reply(choices: &mut Choices<'_>) -> String {
    let mut pick = |from: &[&'static str]| from[choices.below(from.len())];
    let is_emoji = pick(&["", "", "", "emoji"]) == "emoji";
    let mut text = pick(&["", "", "<think>", "\n<think>\n"]).to_owned();
    for _ in 0..pick(&["1", "2", "3", "4"]).parse().unwrap() {
        if is_emoji {
            text += pick(EMOJI);
            continue;
        }
        writeln!(text, "!!!GADGET_START:{}", pick(HEADERS)).unwrap();
        if pick(&["argument", "argument", "argument", "none"]) == "argument" {
            write!(text, "!!!ARG:{}\n{}", pick(POINTERS), pick(VALUES)).unwrap();
        }
        text += pick(ENDS);
        text += pick(BETWEEN);
    }
    text
}

#[test]
fn check_reports_what_run_rejects_in_random_replies() {
    let scene = Scene::with_tools("", TOOLS);
    let mut some = 0;
    for case in cases("CHECK_AND_RUN_CASES", 120) {
        let bytes: Vec<u8> = (0..64_u32)
            .map(|at| {
                ((case + 1)
                    .wrapping_mul(0x9E37_79B9_7F4A_7C15)
                    .rotate_left(at)
                    ^ u64::from(at))
                .to_le_bytes()[3]
            })
            .collect();
        let text = reply(&mut Choices::new(&bytes));
        some += usize::from(!check(&scene, &text).is_empty());
    }
    assert!(some > 20, "only {some} replies had a call that is rejected");
}
