//! `plaincall probe` against a scripted server.

use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::{Value, json};

use crate::run::scene::{Ended, Scene, call, wait_until};

/// A server that answers with these scripts, as long as it lives.
struct Serving {
    server: ModelServer,
    _runtime: tokio::runtime::Runtime,
}

fn serving(scripts: Vec<Script>) -> Serving {
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

fn probe(serving: &Serving, options: &[&str]) -> Ended {
    let scene = Scene::new("");
    let url = serving.server.url();
    let all = [&["probe", &url, "m:7b", "--tasks", "one-call"], options].concat();
    scene.plaincall(&all).output().unwrap().into()
}

fn writes(text: &str) -> Script {
    Script::stream(&[text], "stop")
}

/// A question for the weather in Oslo, and its answer.
fn in_blocks() -> Vec<Script> {
    vec![
        writes(&call("weather", &[("city", "Oslo")])),
        writes("It has 7 degrees."),
    ]
}

fn in_emoji() -> Vec<Script> {
    let call = "\u{1F6E0}\u{FE0F}[weather Oslo]\n\u{1F6E0}\u{FE0F}[/end]\n";
    vec![writes(call), writes("It has 7 degrees.")]
}

fn guesses() -> Vec<Script> {
    vec![writes("It has 7 degrees, I think.")]
}

#[test]
fn the_way_in_which_the_model_is_good_is_recommended() {
    for (block, emoji, best) in [
        (in_blocks(), guesses(), "block"),
        (guesses(), in_emoji(), "emoji"),
    ] {
        let serving = serving([block.clone(), emoji.clone(), block, emoji].concat());
        let options = ["--dialects", "block,emoji", "--repeat", "2"];
        let ended = probe(&serving, &options);
        let url = serving.server.url();
        let (one, other) = if best == "block" {
            ("2/2", "0/2")
        } else {
            ("0/2", "2/2")
        };
        let table = format!(
            "                 block  emoji\none-call           {one}    {other}\n\nright              {one}    {other}\nrepaired             0      0\n"
        );
        assert!(ended.stdout.starts_with(&table), "{}", ended.stdout);
        let configuration = format!(
            "\nRecommended: {best}. Configuration:\n\n[models.\"m:7b\"]\nurl = \"{url}\"\nmodel = \"m:7b\"\nsyntax = \"{best}\"\n"
        );
        assert!(ended.stdout.ends_with(&configuration), "{}", ended.stdout);
        assert_eq!(ended.status, Some(0), "{}", ended.stderr);
        let lines: Vec<&str> = ended.stderr.lines().collect();
        assert_eq!(lines.len(), 4, "{}", ended.stderr);
        let wrong = "one-call: wrong: did not call `weather` with {\"city\":\"Oslo\"}";
        assert!(
            lines.contains(
                &format!(
                    "1/4 block {}",
                    if best == "block" {
                        "one-call: right"
                    } else {
                        wrong
                    }
                )
                .as_str()
            ),
            "{lines:?}"
        );
        assert_eq!(serving.server.left(), 0);
    }
}

#[test]
fn as_json() {
    let serving = serving([in_blocks(), guesses()].concat());
    let options = ["--dialects", "block,block-angle", "--repeat", "1"];
    let ended = probe(&serving, &[&options[..], &["--json"]].concat());
    let output: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(output["report"]["recommended"], "block");
    assert_eq!(
        (&output["complete"], &output["error"]),
        (&true.into(), &Value::Null)
    );
    assert_eq!(output["report"]["styles"][0]["right"], 1);
    assert_eq!(output["report"]["trials"][1]["is_right"], false);
    let configuration = output["configuration"].as_str().unwrap();
    assert!(
        configuration.ends_with("syntax = \"block\"\n"),
        "{configuration}"
    );
}

#[test]
fn a_model_that_fails() {
    // It writes no call, ever.
    let scripts = (0..2).flat_map(|_| vec![writes("I cannot.")]).collect();
    let ended = probe(
        &serving(scripts),
        &["--dialects", "block,emoji", "--repeat", "1"],
    );
    assert_eq!(ended.status, Some(1));
    assert!(
        ended
            .stderr
            .contains("error: the model solved no task with calls"),
        "{}",
        ended.stderr
    );
    assert!(!ended.stdout.contains("Recommended"), "{}", ended.stdout);
    // It accepts no client.
    let refused = Script::json(401, &json!({"error": {"message": "no"}}));
    let serving = serving(vec![refused]);
    let ended = probe(&serving, &["--repeat", "9"]);
    assert_eq!((ended.status, ended.stdout.as_str()), (Some(1), ""));
    assert!(
        ended.stderr.contains("requires a key (status 401): no"),
        "{}",
        ended.stderr
    );
    assert_eq!(serving.server.seen().requests.len(), 1);
}

#[test]
fn wrong_usage() {
    let scene = Scene::new("");
    for (options, expected) in [
        (
            ["--tasks", "one-cal"],
            "tip: a similar value exists: 'one-call'",
        ),
        (["--dialects", "json"], "[possible values: block, "),
        (["--repeat", "0"], "0 is not in 1..=1000"),
    ] {
        let all = [&["probe", "http://127.0.0.1:1/v1", "m"], &options[..]].concat();
        let ended: Ended = scene.plaincall(&all).output().unwrap().into();
        assert_eq!(ended.status, Some(2), "{}", ended.stderr);
        assert!(ended.stderr.contains(expected), "{}", ended.stderr);
    }
}

#[test]
fn an_interrupt_prints_the_results_so_far() {
    use plaincall_testkit::model_server::Then;
    let stall = Script::nothing(Then::Stall);
    let serving = serving([in_blocks(), vec![stall]].concat());
    let scene = Scene::new("");
    let url = serving.server.url();
    let options = [
        "probe",
        &url,
        "m",
        "--dialects",
        "block",
        "--tasks",
        "one-call",
    ];
    let child = scene.plaincall(&options).spawn().unwrap();
    wait_until("it is asked a third time", || {
        serving.server.seen().requests.len() == 3
    });
    let id = rustix::process::Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap();
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let ended: Ended = child.wait_with_output().unwrap().into();
    assert_eq!(ended.status, Some(130));
    assert!(
        ended.stdout.contains("Recommended: block."),
        "{}",
        ended.stdout
    );
}
