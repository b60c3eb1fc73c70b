//! `plaincall probe --cases` and `plaincall tools examples`, with recorded replies.

use std::fs;

use serde_json::json;

use super::probe;
use crate::run::scene::{Scene, call};

const TOOLS: &str = "[tools.read]\ndescription = 'Reads a note.'\neffect = 'read'\nparameters = { name = 'string' }\nshell = 'false'\n";
const OPTIONS: [&str; 5] = [
    "replay:replies.jsonl",
    "--tools",
    "tools.toml",
    "--cases",
    "cases.jsonl",
];

fn scene(replies: &[&str], cases: &[serde_json::Value]) -> Scene {
    let scene = Scene::with_tools("", TOOLS);
    let lines = |values: Vec<String>| values.join("\n");
    let replies = replies.iter().map(|reply| json!(reply).to_string());
    fs::write(scene.path("replies.jsonl"), lines(replies.collect())).unwrap();
    let cases = cases.iter().map(ToString::to_string);
    fs::write(scene.path("cases.jsonl"), lines(cases.collect())).unwrap();
    scene
}

fn asked(name: &str) -> serde_json::Value {
    json!({"question": format!("What is in {name}?"), "calls": [{"tool": "read", "arguments": {"name": name}}]})
}

/// One case chooses between two settings, the other shows the result.
#[test]
fn the_settings_of_the_best_result_are_printed() {
    let emoji = |name: &str| format!("🛠️[read {name}]\n🛠️[/end]\n");
    let cases = [asked("plan"), asked("list")];
    let scene = scene(&[], &cases);
    let file = scene.path("settings.toml");
    let compare = |replies: &[&str], more: &[&str]| {
        let first = [super::models("someone")];
        let replies = replies.iter().map(|reply| super::answer(reply));
        let serving = super::serving(first.into_iter().chain(replies).collect());
        let url = serving.server.url();
        if let Ok(text) = fs::read_to_string(&file) {
            fs::write(&file, text.replace("URL", &url)).unwrap();
        }
        let ended = probe(&scene, &[&[&*url, "m"], &OPTIONS[1..], more].concat());
        for asked in &serving.server.seen().requests[1..] {
            assert_eq!(asked.json()["max_tokens"], 512);
        }
        ended
    };
    let wrong = call("read", &[("name", "plans")]);
    let replies = [&*wrong, &emoji("plan"), &emoji("list"), "No."];
    let before = "# Mine.\nmodel = \"m\" # the small one\n\n[models.m]\nmodel = \"m\"\nurl = \"URL\"\narg_prefix = \"@:\"\nsyntax = \"block\" # for now\n\n[models.other]\nurl = \"http://localhost/v1\"\n";
    fs::write(&file, before).unwrap();
    let ended = compare(&replies, &["--write", "settings.toml"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(ended.stderr.ends_with("settings.toml\n"), "{ended:?}");
    let after = fs::read_to_string(&file).unwrap();
    let settings: toml::Table = toml::from_str(&after).unwrap();
    assert_eq!(settings["models"]["m"]["syntax"].as_str(), Some("emoji"));
    assert_eq!(settings["models"]["m"].get("arg_prefix"), None);
    for kept in [
        "# Mine.\nmodel = \"m\" # the small one\n",
        "\n[models.other]\nurl",
        "syntax = \"emoji\" # for now\n",
    ] {
        assert!(after.contains(kept), "{after}");
    }
    for part in [
        "  emoji: 1 of 1 solved (21 to 100 %)\n  block: 0 of 1 solved (0 to 79 %)\n",
        "The other cases:\n  emoji: 1 of 1 solved (21 to 100 %)\n  block: 0 of 1 solved (0 to 79 %), the default\nThe intervals overlap",
        "[models.m]\n",
        "syntax = \"emoji\"\n",
    ] {
        assert!(ended.stdout.contains(part), "{part}: {ended:?}");
    }
    let lines = "1 block: wrong: What is in plan?\n2 emoji: right";
    assert!(ended.stderr.contains(lines), "{ended:?}");

    let replies = [&*wrong, "No.", "It is \u{1b}[2Jempty."];
    let ended = compare(&replies, &["--json"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert!(
        ended.stderr.contains("solved none of the cases"),
        "{ended:?}"
    );
    let report: serde_json::Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(report["best"], report["default"]);
    let missed = &report["missed"][0];
    assert_eq!(missed["expected"][0]["arguments"]["name"], "list");
    assert_eq!(missed["answer"], "It is \u{1b}[2Jempty.");
}

/// Nothing is written if the file is not a configuration.
#[test]
fn an_invalid_configuration_stays_as_it_is() {
    for (text, expected) in [
        ("models = 1\n", "`models` is not a table"),
        ("[models.m\n", "settings.toml: TOML parse error at line 1"),
        ("colour = 'red'\n", "unknown"),
        (
            "[models.m]\nurl = 'http://localhost/v1'\nkind = 'anthropic'\n",
            "`[models.m]` is another model: its `url` differs",
        ),
    ] {
        let emoji = |name: &str| format!("🛠️[read {name}]\n🛠️[/end]\n");
        let scene = scene(&[], &[asked("plan"), asked("list")]);
        let replies = ["No.", &emoji("plan"), &emoji("list"), "No."].map(super::answer);
        let first = [super::models("someone")];
        let serving = super::serving(first.into_iter().chain(replies).collect());
        fs::write(scene.path("settings.toml"), text).unwrap();
        let url = serving.server.url();
        let options = [&[&*url, "m"], &OPTIONS[1..], &["--write", "settings.toml"]].concat();
        let ended = probe(&scene, &options);
        assert_eq!(ended.status, Some(1), "{ended:?}");
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
        assert_eq!(
            fs::read_to_string(scene.path("settings.toml")).unwrap(),
            text
        );
    }
    let ended = probe(
        &Scene::new(""),
        &["reference:block", "--write", "settings.toml"],
    );
    assert!(ended.stderr.contains("requires a real model"), "{ended:?}");
}

#[test]
fn mistakes_in_cases_have_a_place() {
    for (case, expected) in [
        (
            json!({"question": "a", "call": []}),
            "cases.jsonl, line 2: unknown field `call`",
        ),
        (
            json!({"question": " "}),
            "cases.jsonl, line 2: `question` is empty",
        ),
        (
            json!({"question": "a", "calls": [{"tool": "raed"}]}),
            "cases.jsonl, line 2: unknown tool `raed`; did you mean `read`?",
        ),
    ] {
        let scene = scene(&["a"], &[asked("plan"), case]);
        let ended = probe(&scene, &OPTIONS);
        assert!(ended.stderr.contains(expected), "{expected}: {ended:?}");
    }
    let few = scene(&["a"], &[asked("plan")]);
    assert!(probe(&few, &OPTIONS).stderr.contains("has too few cases"));
    let ended = probe(&few, &OPTIONS[..3]);
    assert!(
        ended.stderr.contains("`--tools` requires `--cases FILE`"),
        "{ended:?}"
    );
}

/// Examples that are not valid calls are omitted. The file is valid with the others.
#[test]
fn a_model_writes_examples() {
    let right = json!({"question": "What was the \"plan\"?", "tool": "read", "arguments": {"name": "plan"}, "result": "To go.", "answer": "It was to go."});
    let mut wrong = right.clone();
    wrong["arguments"] = json!({"file": "plan"});
    let written = json!({"examples": [wrong, right]}).to_string();
    let scene = scene(&[&written], &[]);
    let command = [
        "tools",
        "examples",
        "--model",
        "replay:replies.jsonl",
        "--tools",
        "tools.toml",
    ];
    let ended: crate::run::scene::Ended = scene.plaincall(&command).output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert!(
        ended.stderr.contains("`read`: `arguments` of example 1: "),
        "{ended:?}"
    );
    let expected = "[[tools.\"read\".examples]]\nquestion = 'What was the \"plan\"?'\nresult = \"To go.\"\nanswer = \"It was to go.\"\narguments = { name = \"plan\" }\n\n";
    assert_eq!(ended.stdout, expected);
    fs::write(scene.path("more.toml"), format!("{TOOLS}{}", ended.stdout)).unwrap();
    let checked: crate::run::scene::Ended = scene
        .plaincall(&["tools", "check", "more.toml"])
        .output()
        .unwrap()
        .into();
    assert_eq!(checked.status, Some(0), "{checked:?}");
}
