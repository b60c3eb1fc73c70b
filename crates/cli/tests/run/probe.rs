//! `plaincall probe` against reference models, recorded replies and a scripted server.

mod cases;
mod grammars;
mod printed;

use std::fs;

use plaincall_probe::SharedResult;
use plaincall_testkit::model_server::{Head, ModelServer, Script, Then, chunk};
use serde_json::{Value, json};

use crate::run::scene::{Ended, Scene, call, wait_until};

/// A server that answers with these scripts until it is dropped.
pub(super) struct Serving {
    pub(super) server: ModelServer,
    _runtime: tokio::runtime::Runtime,
}

pub(super) fn serving(scripts: Vec<Script>) -> Serving {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    let server = runtime.block_on(ModelServer::start(scripts));
    Serving {
        server,
        _runtime: runtime,
    }
}

fn probe(scene: &Scene, arguments: &[&str]) -> Ended {
    let all = [&["probe"], arguments].concat();
    scene.plaincall(&all).output().unwrap().into()
}

fn answer(text: &str) -> Script {
    Script::stream(&[text], "stop")
}

/// A list with one model of this owner.
pub(super) fn models(owner: &str) -> Script {
    Script::json(200, &json!({"data": [{"id": "m", "owned_by": owner}]}))
}

/// Native calls of a record and a city, in two pieces.
fn natively() -> Script {
    let piece = |call: Value| chunk(&json!({ "tool_calls": [call] }), &Value::Null);
    let pieces = vec![
        piece(
            json!({"index": 0, "id": "c1", "type": "function", "function": {"name": "get_record", "arguments": "{\"table\":"}}),
        ),
        piece(json!({"index": 0, "function": {"arguments": "\"users\",\"id\":\"u-1007\"}"}})),
        chunk(&json!({}), &json!("tool_calls")),
        b"data: [DONE]\n\n".to_vec(),
    ];
    Script::new(
        Head::new(200).header("content-type", "text/event-stream"),
        pieces,
    )
}

const ANSWER: &str = "Tromsdalen.";
const LOOK_UP: [&str; 2] = ["--tasks", "look-up"];

fn in_block() -> Script {
    answer(&call("get_record", &[("table", "users"), ("id", "u-1007")]))
}

fn in_json() -> Script {
    answer(
        "```json\n{\"name\": \"get_record\", \"arguments\": {\"table\": \"users\", \"id\": \"u-1007\"}}\n```",
    )
}

fn in_emoji() -> Script {
    answer("\u{1F6E0}\u{FE0F}[get_record users u-1007]\n\u{1F6E0}\u{FE0F}[/end]\n")
}

#[test]
fn each_arm_is_asked_in_its_own_form() {
    let scripts = vec![
        models("library"),
        natively(),
        answer(ANSWER),
        in_json(),
        answer(ANSWER),
        in_block(),
        answer(ANSWER),
        in_emoji(),
        answer(ANSWER),
    ];
    let serving = serving(scripts);
    let scene = Scene::new("");
    let url = serving.server.url();
    let ended = probe(
        &scene,
        &[&[url.as_str(), "m:7b", "--repeat", "1"], &LOOK_UP[..]].concat(),
    );
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .contains("\nresults\n  look-up               1/1     1/1     1/1     1/1\n"),
        "{}",
        ended.stdout
    );
    assert!(
        ended
            .stdout
            .contains("No difference found between native (1 of 1 correct, 21 to 100 %) and emoji"),
        "{}",
        ended.stdout
    );
    let configuration =
        format!("\n[models.m-7b]\nurl = \"{url}\"\nmodel = \"m:7b\"\nsyntax = \"emoji\"\n");
    assert!(ended.stdout.ends_with(&configuration), "{}", ended.stdout);
    let requests: Vec<Value> = serving
        .server
        .seen()
        .requests
        .iter()
        .skip(1)
        .map(|asked| serde_json::from_slice(&asked.body).unwrap())
        .collect();
    assert_eq!(requests.len(), 8);
    let note = "note: without the arm block-grammar: the server's list of models names no engine";
    assert!(ended.stderr.starts_with(note), "{}", ended.stderr);
    for (number, request) in requests.iter().enumerate() {
        assert_eq!(request["tools"].is_array(), number < 2, "{request}");
    }
    assert_eq!(requests[0]["tools"][0]["function"]["name"], "get_record");
    let messages = requests[1]["messages"].as_array().unwrap();
    assert_eq!(
        messages[2]["tool_calls"][0]["function"]["arguments"],
        "{\"table\":\"users\",\"id\":\"u-1007\"}"
    );
    assert_eq!(
        (&messages[3]["role"], &messages[3]["tool_call_id"]),
        (&json!("tool"), &json!("c1"))
    );
    assert!(
        messages[3]["content"]
            .as_str()
            .unwrap()
            .contains("Tromsdalen")
    );
    // The common parts are equal.
    let question = |request: &Value| {
        request["messages"][1]["content"]
            .as_str()
            .unwrap()
            .trim()
            .to_owned()
    };
    assert_eq!(question(&requests[0]), question(&requests[2]));
    assert!(question(&requests[4]).contains(&question(&requests[0])));
    // Two notes, and a line for each attempt, with an estimate.
    let lines: Vec<&str> = ended.stderr.lines().collect();
    assert_eq!(lines.len(), 6, "{}", ended.stderr);
    for (line, start) in [(1, "note: comparing"), (2, "1/4 native look-up: correct")] {
        assert!(lines[line].starts_with(start), "{}", ended.stderr);
    }
}

/// Tries the model `a`, which has these settings, with one arm.
fn look_up(scene: &Scene, serving: &Serving, arm: &str, settings: &str) -> Ended {
    let config = format!("[models.a]\nurl = '{}'\n{settings}", serving.server.url());
    fs::write(scene.path("config.toml"), config).unwrap();
    let fixed = [
        "a",
        "--config",
        "config.toml",
        "--repeat",
        "1",
        "--arms",
        arm,
    ];
    probe(scene, &[&fixed[..], &LOOK_UP].concat())
}

#[test]
fn self_closing_calls_of_the_emoji_arm() {
    let scene = Scene::new("");
    for (setting, is_accepted) in [
        ("", false),
        ("syntax = 'emoji'\nself_closing = true\n", true),
    ] {
        let call = answer("\u{1F6E0}\u{FE0F}[get_record users u-1007 /]\n");
        // A rejected call gets a message, after which the model answers without one.
        let serving = serving([vec![call], vec![answer(ANSWER); 8]].concat());
        let ended = look_up(&scene, &serving, "emoji", setting);
        let text = format!("{setting:?}: {}{}", ended.stdout, ended.stderr);
        assert_eq!(
            ended.stderr.contains("emoji look-up: correct\n"),
            is_accepted,
            "{text}"
        );
        let expected = if is_accepted {
            "[models.a] already has these settings.\n"
        } else {
            "[models.a]   # add to this table\nsyntax = \"emoji\"\n"
        };
        assert!(ended.stdout.contains(expected), "{text}");
    }
}

#[test]
fn replies_that_begin_inside_reasoning() {
    let scene = Scene::new("");
    let call =
        "!!!GADGET_START:get_record\n!!!ARG:table\nusers\n!!!ARG:id\nu-1007\n!!!GADGET_END\n";
    for (thought, expected) in [
        ("Hm.</think>\n", true),
        ("<think>Hm.</think>\n", false),
        ("", false),
    ] {
        let replies = [call, ANSWER].map(|text| answer(&format!("{thought}{text}")));
        let serving = serving(replies.to_vec());
        let ended = look_up(&scene, &serving, "block", "");
        let text = format!("{thought:?}: {}{}", ended.stdout, ended.stderr);
        let has = ended.stdout.contains("\nin_reasoning = true\n");
        assert_eq!(has, expected, "{text}");
        assert!(ended.stdout.contains("[models.a]"), "{text}");
    }
}

#[test]
fn a_result_to_share_has_no_secrets() {
    let secret = "sk-topsecret";
    let serving = serving(vec![
        natively(),
        answer(ANSWER),
        in_block(),
        answer("I do not know."),
    ]);
    let scene = Scene::new("");
    let url = format!("{}?key={secret}", serving.server.url());
    let config = format!(
        "[models.mine]\nurl = '{url}'\nmodel = 'm'\nkey_env = 'MY_KEY'\nextra = {{ user = '{secret}', top_k = 40, seed = 5 }}\n"
    );
    fs::write(scene.path("config.toml"), config).unwrap();
    let arguments = [
        &[
            "mine",
            "--config",
            "config.toml",
            "--arms",
            "native,block",
            "--repeat",
            "1",
            "--json",
            "--record",
            "r.jsonl",
        ],
        &LOOK_UP[..],
    ]
    .concat();
    let ended: Ended = scene
        .plaincall(&[&["probe"], &arguments[..]].concat())
        .env("MY_KEY", secret)
        .output()
        .unwrap()
        .into();
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        !ended.stdout.contains("topsecret") && !ended.stdout.contains("127.0.0.1"),
        "{}",
        ended.stdout
    );
    let result = SharedResult::read(&ended.stdout).unwrap();
    assert_eq!(result.model, "m");
    assert_eq!(result.settings.request_fields, ["user", "top_k", "seed"]);
    assert_eq!(result.settings.seed, Some(5));
    let sent = serving.server.seen().requests.last().unwrap().body.clone();
    let sent: Value = serde_json::from_slice(&sent).unwrap();
    assert_eq!(sent["seed"], 5);
    assert!(!result.is_complete);
    let record = fs::read_to_string(scene.path("r.jsonl")).unwrap();
    assert!(
        !record.contains("topsecret") && !record.contains("127.0.0.1"),
        "{record}"
    );
    assert_eq!(record.lines().count(), 3);
}

#[test]
fn an_interrupt_before_the_first_attempt_ends_is_explained() {
    let begun = "note: comparing ways to call tools with m, in 960 attempts; ";
    let stall = || Script::nothing(Then::Stall);
    // Also before the list of models comes.
    for (scripts, begin) in [(vec![models("vllm"), stall()], begun), (vec![stall()], "")] {
        let count = scripts.len();
        let stalled = serving(scripts);
        let url = stalled.server.url();
        let scene = Scene::new("");
        let child = scene.plaincall(&["probe", &url, "m"]).spawn().unwrap();
        wait_until("it is asked", || {
            stalled.server.seen().requests.len() == count
        });
        let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
        rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
        let ended: Ended = child.wait_with_output().unwrap().into();
        assert_eq!((ended.status, ended.stdout.as_str()), (Some(130), ""));
        assert!(ended.stderr.starts_with(begin), "{}", ended.stderr);
        let last = "note: no attempt has ended, so there are no results\n";
        assert!(ended.stderr.ends_with(last), "{}", ended.stderr);
    }
}

#[test]
fn an_interrupted_comparison_continues() {
    let stall = Script::nothing(Then::Stall);
    let first = serving(vec![in_block(), answer(ANSWER), stall]);
    let scene = Scene::new("");
    let url = first.server.url();
    let options = [
        "probe", &url, "m", "--arms", "block", "--tasks", "look-up", "--record", "r.jsonl",
        "--json",
    ];
    let child = scene.plaincall(&options).spawn().unwrap();
    wait_until("it is asked a third time", || {
        first.server.seen().requests.len() == 3
    });
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(130));
    assert_eq!(
        SharedResult::read(&ended.stdout).unwrap().arms[0].attempts,
        1
    );
    // A crash leaves an incomplete line.
    let record = scene.path("r.jsonl");
    let mut text = fs::read_to_string(&record).unwrap();
    text.push_str("{\"arm\":\"blo");
    fs::write(&record, text).unwrap();
    let second = serving(vec![
        in_block(),
        answer(ANSWER),
        in_block(),
        answer("I forgot."),
    ]);
    let url = second.server.url();
    let options = [
        url.as_str(),
        "m",
        "--arms",
        "block",
        "--tasks",
        "look-up",
        "--record",
        "r.jsonl",
        "--json",
    ];
    let ended = probe(&scene, &options);
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stderr
            .contains("continuing after 1 recorded attempt\n"),
        "{}",
        ended.stderr
    );
    let arm = &SharedResult::read(&ended.stdout).unwrap().arms[0];
    assert_eq!((arm.attempts, arm.correct), (3, 2));
    assert_eq!(fs::read_to_string(&record).unwrap().lines().count(), 4);
    // All attempts exist: nothing is requested, and another limit is an error.
    let ended = probe(&scene, &options);
    assert_eq!(
        (ended.status, second.server.seen().requests.len()),
        (Some(0), 4)
    );
    let ended = probe(&scene, &[&options[..], &["--timeout", "9s"]].concat());
    assert_eq!(ended.status, Some(1));
    assert!(
        ended
            .stderr
            .contains("cannot continue r.jsonl: it was recorded with other settings"),
        "{}",
        ended.stderr
    );
}

#[test]
fn reference_models_need_no_server() {
    let scene = Scene::new("");
    for (name, expected) in [
        ("native", "Keep native: native (3 of 3 correct"),
        ("emoji", "Recommended: emoji (3 of 3 correct"),
    ] {
        let model = format!("reference:{name}");
        // The kinds of these tasks distinguish the arms.
        let options = [&model, "--tasks", "rules-file,sql,nested", "--repeat", "1"];
        let ended = probe(&scene, &options);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        // Three attempts are few.
        assert!(
            ended.stdout.contains(expected) || ended.stdout.contains("No difference found"),
            "{}",
            ended.stdout
        );
    }
    let one = ["reference:block", "--tasks", "sql", "--repeat", "1"];
    assert!(probe(&scene, &one).stderr.contains("sql"));
    let quiet = probe(&scene, &[&one[..], &["--quiet"]].concat());
    assert_eq!((quiet.status, quiet.stderr.as_str()), (Some(0), ""));
    assert!(quiet.stdout.contains("block"), "{}", quiet.stdout);
    let ended = probe(&scene, &["reference:block", "--quick"]);
    let note = "runs no task with the agent-sized prompt";
    assert!(ended.stdout.contains(note), "{}", ended.stdout);
    assert!(!quiet.stdout.contains(note), "{}", quiet.stdout);
    let ended = probe(&scene, &["reference:block", "--quick", "--json"]);
    let result = SharedResult::read(&ended.stdout).unwrap();
    let block = result.arms.iter().find(|arm| arm.arm == "block");
    let attempts = block.map(|arm| arm.attempts);
    assert_eq!((result.is_complete, attempts), (false, Some(58)));
}

#[test]
fn recorded_replies_are_a_model() {
    let scene = Scene::new("");
    let reply = call("get_record", &[("table", "users"), ("id", "u-1007")]);
    let lines = [json!(reply).to_string(), json!(ANSWER).to_string()];
    fs::write(scene.path("replies.jsonl"), lines.join("\n")).unwrap();
    let ended = probe(
        &scene,
        &[&["replay:replies.jsonl", "--repeat", "4"], &LOOK_UP[..]].concat(),
    );
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended
            .stdout
            .contains("native could not be tried: this model has no native tool calls"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("Recommended: block (4 of 4 correct"),
        "{}",
        ended.stdout
    );
}

#[test]
fn a_server_that_refuses() {
    let scene = Scene::new("");
    // No server listens on this port of localhost. The error is printed once.
    let ended = probe(&scene, &["http://127.0.0.1:9/v1", "m"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""));
    let times = ended.stderr.matches("is it running?").count();
    assert_eq!(times, 1, "{}", ended.stderr);
    let refused = Script::json(401, &json!({"error": {"message": "no"}}));
    let first = serving(vec![refused.clone(), refused.clone(), refused]);
    let ended = probe(&scene, &[&first.server.url(), "m"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""));
    assert!(
        ended.stderr.contains("requires a key (status 401): no"),
        "{}",
        ended.stderr
    );
    // The server has no tools: the other arms continue.
    let refused = Script::json(
        400,
        &json!({"error": {"message": "m does not support tools"}}),
    );
    let second = serving(vec![refused, in_block(), answer(ANSWER)]);
    let ended = probe(
        &scene,
        &[
            &[
                second.server.url().as_str(),
                "m",
                "--arms",
                "native,block",
                "--repeat",
                "1",
            ],
            &LOOK_UP[..],
        ]
        .concat(),
    );
    assert_eq!(ended.status, Some(0), "{}", ended.stderr);
    assert!(
        ended.stdout.contains("native could not be tried: "),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("m does not support tools"),
        "{}",
        ended.stdout
    );
    assert!(
        ended.stdout.contains("Recommended: block (1 of 1 correct"),
        "{}",
        ended.stdout
    );
}

#[test]
fn the_tasks_are_listed_without_a_model() {
    let ended = probe(&Scene::new(""), &["--tasks", "list"]);
    assert_eq!((ended.status, ended.stderr.as_str()), (Some(0), ""));
    let tasks = ended.stdout.lines().filter(|line| line.starts_with("  "));
    assert_eq!(tasks.count(), 64, "{}", ended.stdout);
}

#[test]
fn wrong_usage() {
    let scene = Scene::new("");
    for (options, expected) in [
        (
            &["http://127.0.0.1:1/v1"][..],
            "a URL requires the id of the model",
        ),
        (
            &["http://127.0.0.1:1/v1", "m", "--tasks", "look-upp"],
            "unknown task `look-upp`; did you mean `look-up`?",
        ),
        (
            &["http://127.0.0.1:1/v1", "m", "--arms", "yaml"],
            "[possible values: native, json, block, emoji, ",
        ),
        (
            &["http://127.0.0.1:1/v1", "m", "--repeat", "0"],
            "0 is not in 1..=1000",
        ),
        (&["qwen3"], "unknown model `qwen3`"),
        (&[], "missing model"),
        (
            &["reference:xml"],
            "unknown reference model `xml`; there are `reference:native`",
        ),
    ] {
        let ended = probe(&scene, options);
        assert_eq!(ended.status, Some(2), "{options:?}: {}", ended.stderr);
        assert!(
            ended.stderr.contains(expected),
            "{options:?}: {}",
            ended.stderr
        );
    }
}
