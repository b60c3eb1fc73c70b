//! The log on standard output: `--json`.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use plaincall::RunEvent;
use serde_json::{Value, json};

use crate::run::scene::{Ended, PLAINCALL, Scene, call};

/// The keys of each event. A question mark means that a key is optional.
const KEYS: [(&str, &str); 11] = [
    (
        "run",
        "n event version plaincall began_unix_ms policy tools current_directory directory note crc",
    ),
    ("turn", "n event turn t_ms crc"),
    ("text", "n event text t_ms crc"),
    ("call", "n event call id name dependencies? t_ms crc"),
    ("waiting", "n event call id name arguments t_ms crc"),
    ("ready", "n event call id name t_ms crc"),
    ("admitted", "n event call id name by reason t_ms crc"),
    ("start", "n event call id name attempt t_ms crc"),
    (
        "result",
        "n event call id name status output? error? because? t_ms crc",
    ),
    ("reply_end", "n event stop t_ms crc"),
    ("turn_end", "n event turn counts t_ms crc"),
];

fn keys_are_right(event: &Value) -> bool {
    let event = event.as_object().unwrap();
    let name = event["event"].as_str().unwrap();
    let Some((_, keys)) = KEYS.iter().find(|(known, _)| *known == name) else {
        return false;
    };
    let mut expected = keys.split(' ').filter(|key| {
        let is_optional = key.ends_with('?');
        !is_optional || event.contains_key(key.trim_end_matches('?'))
    });
    event
        .keys()
        .all(|key| expected.next().map(|key| key.trim_end_matches('?')) == Some(key))
        && expected.next().is_none()
}

#[test]
fn the_record() {
    let scene = Scene::new(
        [
            "Text.\n",
            &call("say:a", &[("text", "ü")]),
            &call("fail:b:a", &[("reason", "why")]),
            &call("say:c:b", &[("text", "never")]),
            &call("say:d:c", &[("text", "never")]),
        ]
        .concat(),
    );
    let ended = scene.run(&["--json"]);
    assert_eq!(ended.status, Some(1), "{ended:?}");
    assert_eq!(ended.stderr, "");
    let events: Vec<Value> = ended
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let mut last = 0;
    for (place, event) in events.iter().enumerate() {
        assert!(keys_are_right(event), "{event}");
        assert_eq!(event["n"], place);
        let time = event["t_ms"].as_u64().unwrap_or_default();
        assert!(last <= time, "times do not go back: {event}");
        last = time;
    }

    let mut of_call: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for event in &events {
        if let Some(call) = event["call"].as_u64() {
            of_call
                .entry(call)
                .or_default()
                .push(event["event"].as_str().unwrap());
        }
    }
    let ran = vec!["call", "waiting", "ready", "admitted", "start", "result"];
    let skipped = vec!["call", "waiting", "result"];
    let expected = [
        (0, ran.clone()),
        (1, ran),
        (2, skipped.clone()),
        (3, skipped),
    ];
    assert_eq!(of_call, BTreeMap::from(expected));

    let result = |call: u64| {
        let is_it = |event: &&Value| event["event"] == "result" && event["call"] == call;
        let mut result = events.iter().find(is_it).unwrap().clone();
        for key in ["n", "t_ms", "crc"] {
            result.as_object_mut().unwrap().remove(key);
        }
        result
    };
    assert_eq!(
        result(0),
        json!({"event": "result", "call": 0, "id": "a", "name": "say", "status": "ok", "output": "ü\n"})
    );
    assert_eq!(
        result(1),
        json!({"event": "result", "call": 1, "id": "b", "name": "fail", "status": "error",
            "output": "something before\n",
            "error": "the command ended with exit status 7; its standard error:\nwhy"})
    );
    assert_eq!(
        result(3),
        json!({"event": "result", "call": 3, "id": "d", "name": "say", "status": "skipped",
            "error": "not run: it depends on `c`, which was skipped; the first failure was `b`",
            "because": {"link": "dependency", "call": 2, "id": "c", "root": {"call": 1, "id": "b"}}})
    );
    let end = events.last().unwrap();
    assert_eq!(end["event"], "turn_end");
    assert_eq!(
        end["counts"],
        json!({"ok": 1, "error": 1, "skipped": 2, "rejected": 0, "cancelled": 0, "unknown": 0})
    );
}

#[test]
fn a_record_without_calls() {
    let ended = Scene::new("Text.\n").run(&["--json"]);
    assert_eq!(ended.status, Some(0));
    let record = plaincall::log::read_log(ended.stdout.as_bytes()).unwrap();
    assert!(matches!(
        record.events.as_slice(),
        [
            RunEvent::Run(_),
            RunEvent::Turn(_),
            RunEvent::Text(_),
            RunEvent::ReplyEnd(_),
            RunEvent::TurnEnd(_)
        ]
    ));
}

/// Repeats a command with more and more room for its log, until there is enough. Each printed line is in the log, or
/// reports that the log failed.
fn check_full_disk(log: &str, arguments: &[&str], last_lines: &[&str], scene: impl Fn() -> Scene) {
    for blocks in 0.. {
        let scene = scene();
        let script = format!(r#"ulimit -f {blocks}; exec "$0" "$@""#);
        let mut command = Command::new("/bin/sh");
        command.args(["-c", &script, PLAINCALL]).args(arguments);
        command
            .current_dir(scene.path(""))
            .env_clear()
            .envs(scene.environment());
        command.env("HOME", scene.path("home")).stdin(Stdio::null());
        let ended: Ended = command.output().unwrap().into();
        let log = fs::read(scene.path(log)).unwrap();
        let log = String::from_utf8_lossy(&log);
        if ended.status == Some(0) {
            assert!(blocks > 2);
            return;
        }
        assert_eq!(ended.status, Some(1), "{blocks}: {ended:?}");
        let lines: Vec<&str> = ended.stdout.lines().collect();
        let (printed, last) = lines.split_at(lines.len() - last_lines.len());
        for (line, kind) in last.iter().zip(last_lines) {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(line["event"], *kind, "{blocks}: {ended:?}");
        }
        let logged: Vec<&str> = log.lines().collect();
        assert!(
            logged.starts_with(printed),
            "{blocks}: {printed:?} {logged:?}"
        );
        assert!(
            ended.stderr.contains("could not be written")
                || ended.stderr.contains("cannot be written"),
            "{blocks}: {ended:?}"
        );
    }
}

#[test]
fn nothing_is_printed_that_is_not_in_the_log() {
    let reply = [
        "Text.\n".repeat(50),
        call("say:a", &[("text", &"ü".repeat(900))]),
        call("deploy:b:a", &[("host", "h")]),
        call("say:c:b", &[("text", "after")]),
    ]
    .concat();
    let run = ["run", "reply.txt", "--tools", "tools.toml"];
    let options = ["--yes", "--log", "log", "--json"];
    check_full_disk(
        "log",
        &[&run[..], &options].concat(),
        &["log_failed"],
        || Scene::new(&reply),
    );
}

#[test]
fn nothing_is_printed_of_a_conversation_that_is_not_in_its_log() {
    let replies = [
        call("say:a", &[("text", &"ü".repeat(900))]),
        "Done. ".repeat(100),
    ];
    let ask = ["ask", "What?", "--model", "replay:replies.jsonl"];
    let options = ["--tools", "tools.toml", "--session", "notes", "--json"];
    check_full_disk(
        "home/.local/state/plaincall/sessions/notes.jsonl",
        &[&ask[..], &options].concat(),
        &["log_failed", "failed"],
        || {
            let scene = Scene::new("");
            let lines: Vec<String> = replies
                .iter()
                .map(|reply| json!(reply).to_string() + "\n")
                .collect();
            fs::write(scene.path("replies.jsonl"), lines.concat()).unwrap();
            scene
        },
    );
}
