//! Calls in reasoning, and calls before a stray close marker (`spec/common.md` 5).

use crate::run::scene::{Scene, call};

/// The status of each call, `a=ok b=rejected`, in the order of the results.
fn statuses(stdout: &str) -> String {
    let results = stdout.lines().filter_map(|line| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let of = |key: &str| line[key].as_str().map(str::to_owned);
        (line["event"] == "result").then(|| Some(format!("{}={}", of("id")?, of("status")?)))?
    });
    let mut results: Vec<_> = results.collect();
    results.sort();
    results.join(" ")
}

#[test]
fn calls_in_reasoning_do_not_run() {
    let say = |id: &str| call(&format!("say:{id}"), &[("text", id)]);
    let (a, b, c) = (say("a"), say("b"), say("c"));
    let long = "Some text.\n".repeat(20_000);
    for (reply, options, expected) in [
        (format!("<think>{a}</think>\n{b}"), &[][..], "b=ok"),
        (format!(" \r\n<think>\n{a}</think>\n{b}"), &[], "b=ok"),
        (format!("<think>\n{a}{b}"), &[], ""),
        (format!("It opens with <think>.\n{a}"), &[], "a=ok"),
        (
            format!("<think>{a}</think>{b}"),
            &["--dialect", "no-reasoning"],
            "a=ok b=ok",
        ),
        (
            format!("{a}</think>{b}"),
            &["--dialect", "no-reasoning"],
            "a=ok b=ok",
        ),
        (
            format!("{a}</think>{b}"),
            &["--dialect", "in-reasoning"],
            "b=ok",
        ),
        (
            format!("<t>{a}</t>{b}<t>"),
            &["--dialect", "reasoning=<t>,</t>"],
            "b=ok",
        ),
        // The opening of another model's reasoning.
        (
            format!("<think>{a}</think>"),
            &["--dialect", "reasoning=<t>,</t>"],
            "a=rejected",
        ),
        // A stray close marker.
        (format!("{a}</think>\n{b}"), &[], "a=rejected b=ok"),
        (format!("{a}{b}</think>\n"), &[], "a=rejected b=rejected"),
        // In mid-line, where the text ends.
        (format!("{a}Wrong.</think>"), &[], "a=rejected"),
        (format!("{a}Wrong.</think> \t"), &[], "a=rejected"),
        (format!("{a}Wrong.</think> was it."), &[], "a=ok"),
        (format!("{a}`</think>`"), &[], "a=ok"),
        // Reasoning after a call.
        (format!("{a}<think>{b}</think>{c}"), &[], "a=ok c=ok"),
        (
            format!("\u{FEFF}\u{200B}<think>{a}</think> <think>{b}"),
            &[],
            "",
        ),
        // Back to the stray open marker.
        (
            format!("<think>x</think>{a}So <think>{b}</think>{c}"),
            &[],
            "a=ok b=rejected c=ok",
        ),
        // At any distance from the call.
        (
            format!("{a}{long}</think>{long}{b}"),
            &[],
            "a=rejected b=ok",
        ),
        // Calls that depend on each other.
        (
            format!("{}{}</think>", say("a"), say("b:a")),
            &[],
            "a=rejected b=rejected",
        ),
    ] {
        let scene = Scene::new(&reply);
        let ended = scene.run(&[&["--json"], options].concat());
        assert_eq!(
            statuses(&ended.stdout),
            expected,
            "{reply:.200} {options:?}\n{ended:#?}"
        );
    }
}

#[test]
fn in_a_stream_calls_that_have_not_started_are_rejected() {
    let first = call("nap:first", &[("seconds", "0.2")]);
    let waits = call("say:waits:first", &[("text", "a")]);
    let text = format!(
        "{first}{waits}</think>{}",
        call("say:last", &[("text", "b")])
    );
    let scene = Scene::new("");
    let ended = scene.pipe(text.as_bytes(), &["--json"]);
    // The whole text came in one piece, so nothing had started.
    assert_eq!(
        statuses(&ended.stdout),
        "first=rejected last=ok waits=rejected",
        "{ended:#?}"
    );
    let pace = &["--json", "--pace", "400"];
    let ended = scene.pipe(text.as_bytes(), pace);
    assert_eq!(
        statuses(&ended.stdout),
        "first=ok last=ok waits=rejected",
        "{ended:#?}"
    );
}
