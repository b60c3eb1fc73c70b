//! Logs that are rejected, and logs that fail.

use std::fs;
use std::io::Write as _;
use std::process::{Command, Stdio};
use std::time::Duration;

use plaincall::{
    RunEvent, Status,
    log::{LineEncoder, read_log},
};

use crate::run::scene::{Ended, PLAINCALL, Scene, TOOLS, call, pause, wait_until};

#[track_caller]
fn check(ended: &Ended, status: i32, expected: &[&str]) {
    assert_eq!(ended.status, Some(status), "{ended:#?}");
    for part in expected {
        assert!(ended.stderr.contains(part), "{part:?} is not in {ended:#?}");
    }
}

fn resume(scene: &Scene, log: &str) -> Ended {
    scene.command(&["--resume", log]).output().unwrap().into()
}

#[test]
fn a_log_is_what_json_prints() {
    let reply = call("say:a", &[("text", "ü")]) + &call("deploy:b:a", &[("host", "h")]);
    let scene = Scene::new(reply);
    let ended = scene.run(&["--log", "log", "--json", "--yes"]);
    assert_eq!(ended.status, Some(0), "{ended:?}");
    assert_eq!(ended.stdout, fs::read_to_string(scene.path("log")).unwrap());
    let first = read_log(ended.stdout.as_bytes()).unwrap().events.remove(0);
    let RunEvent::Run(begin) = first else {
        panic!("{first:?}");
    };
    let path = |name| scene.path(name).to_str().unwrap().to_owned();
    assert_eq!(begin.note["reply"]["text"], path("reply.txt"));
    assert_eq!(begin.note["tools"]["text"], path("tools.toml"));
    assert_eq!(begin.note["yes"], true);
}

#[test]
fn a_file_that_is_there_is_not_touched() {
    let scene = Scene::new("Text.\n");
    fs::write(scene.path("log"), "precious").unwrap();
    let ended = scene.run(&["--log", "log"]);
    check(&ended, 1, &["the file log already exists", "--resume log"]);
    assert_eq!(fs::read_to_string(scene.path("log")).unwrap(), "precious");
    assert_eq!(ended.stdout, "");
    check(&scene.run(&["--log", "missing/log"]), 1, &["missing/log"]);
    check(&scene.run(&["--log", "-"]), 2, &["the log must be a file"]);
}

#[test]
fn nothing_is_left_of_a_log_whose_run_could_not_begin() {
    let scene = Scene::new("Text.\n");
    let mut command = scene.command(&["reply.txt", "--tools", "tools.toml", "--log", "log"]);
    let ended: Ended = command.env("TMPDIR", "/missing").output().unwrap().into();
    check(&ended, 1, &["/missing"]);
    assert!(!scene.path("log").exists());
}

#[test]
fn invalid_logs_are_not_resumed() {
    let scene = Scene::new(call("say:a", &[("text", "x")]));
    assert_eq!(scene.run(&["--log", "log"]).status, Some(0));
    let log = fs::read_to_string(scene.path("log")).unwrap();
    let damaged = log.replacen("\"turn\":0", "\"turn\":1", 1);
    let newer = {
        let first = log.lines().next().unwrap();
        let (body, _) = first.rsplit_once(",\"crc\"").unwrap();
        let body = body.replacen("\"version\":1", "\"version\":2", 1);
        let checksum = crc32fast::hash(body.as_bytes());
        format!("{body},\"crc\":\"{checksum:08x}\"}}\n")
    };
    let noted = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut first = read_log(log.as_bytes()).unwrap().events.remove(0);
        if let RunEvent::Run(begin) = &mut first {
            change(&mut begin.note);
        }
        LineEncoder::default().next_line(&first)
    };
    let other = noted(&|note| *note = serde_json::json!({"mine": 1}));
    let newer_note = noted(&|note| note["other"] = 1.into());
    for (name, text, part) in [
        ("empty", "", "the log is empty"),
        ("text", "Some text.\n", "is not the log of a run"),
        ("damaged", &damaged, "line 2 of the log is damaged"),
        ("newer", &newer, "the newer Plaincall"),
        ("other", &other, "was not written by `plaincall run`"),
        (
            "note",
            &newer_note,
            "was written by another version of Plaincall",
        ),
    ] {
        fs::write(scene.path(name), text).unwrap();
        check(&resume(&scene, name), 1, &[part, name]);
        assert_eq!(fs::read_to_string(scene.path(name)).unwrap(), text);
    }
    check(&resume(&scene, "missing"), 1, &["missing"]);
    check(&resume(&scene, "."), 1, &["could not be opened"]);
}

#[test]
fn a_log_belongs_to_one_run() {
    let scene = Scene::new(call("nap:a", &[("seconds", "30")]));
    let options = ["reply.txt", "--tools", "tools.toml", "--log", "log"];
    let mut child = scene.command(&options).spawn().unwrap();
    wait_until("the tool is at work", || {
        fs::read_to_string(scene.path("log")).is_ok_and(|log| log.contains("\"start\""))
    });
    check(&resume(&scene, "log"), 1, &["another run is using the log"]);
    child.kill().unwrap();
    child.wait().unwrap();
}

#[test]
fn nothing_is_lost_while_no_one_reads() {
    // More events than any queue holds.
    let calls = 40_000;
    let reply: String = (0..calls)
        .map(|n| call(&format!("none:c{n}"), &[]))
        .collect();
    let tools = format!("[run]\ncalls_per_turn = {calls}\n{TOOLS}");
    let scene = Scene::with_tools(reply, tools);
    let options = ["reply.txt", "--tools", "tools.toml", "--json"];
    let mut child = scene.command(&options).spawn().unwrap();
    let mut first = [0; 100];
    std::io::Read::read_exact(child.stdout.as_mut().unwrap(), &mut first).unwrap();
    pause(Duration::from_secs(1));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(output.stderr, b"");
    let record = [&first[..], &output.stdout].concat();
    let events = read_log(&record).unwrap().events;
    let results = events
        .iter()
        .filter(|event| matches!(event, RunEvent::Result(_)));
    assert_eq!(results.count(), calls);
}

/// The memory for a reply is bounded: it is not read much further than the calls that may run.
#[test]
fn a_reply_with_too_many_calls_is_not_read_to_its_end() {
    let reply = call("say", &[("text", "x")]).repeat(3) + &call("none", &[]).repeat(20_000);
    let tools = format!("[run]\ncalls_per_turn = 3\n{TOOLS}");
    let scene = Scene::with_tools(reply, tools);
    let ended = scene.run(&["--json"]);
    assert_eq!(ended.status, Some(1));
    assert_eq!(
        ended.stderr,
        "error: the reply has more than 3 calls, so the rest was not read; to run more, set `calls_per_turn` in the tools file\n"
    );
    let events = read_log(ended.stdout.as_bytes()).unwrap().events;
    let is_call = |event: &&RunEvent| matches!(event, RunEvent::Call(_));
    let count = events.iter().filter(is_call).count();
    assert!((4..8000).contains(&count), "{count}");
    let is_ok = |event: &&RunEvent| matches!(event, RunEvent::Result(result) if result.status == Status::Ok);
    assert_eq!(events.iter().filter(is_ok).count(), 3);
    // A tools file that sets no limit has one.
    let scene = Scene::new("");
    let policy = r#""policy":{"concurrent":32,"calls_per_turn":10000,"#;
    let first = scene.run(&["--json"]).stdout;
    assert!(first.contains(policy), "{first}");
    // Calls before the end of reasoning are known only together.
    let scene = Scene::new(call("none", &[]).repeat(10_001) + "</think>\n");
    let ended = scene.run(&[]);
    assert_eq!(ended.status, Some(1));
    let error = "error: the reply has more than 10000 calls before the end of its reasoning";
    assert!(ended.stderr.starts_with(error), "{}", ended.stderr);
}

#[test]
fn a_tools_file_has_a_limit() {
    let scene = Scene::with_tools("", "#".repeat((16 << 20) + 1));
    let ended = scene.run(&[]);
    let error = "cannot read tools.toml: it has more than 16777216 bytes; is it the right file?";
    check(&ended, 1, &[error]);
}

#[test]
fn a_log_that_fails_ends_the_run() {
    // More text than the limit of the log, with a call before it and one after it.
    let before = call("deploy:before", &[("host", "h")]);
    let behind = [
        "A line of text that continues for a while.\n".repeat(2000),
        call("deploy:behind:before", &[("host", "h")]),
    ]
    .concat();
    let scene = Scene::new([before.as_str(), &behind].concat());
    // A file that cannot grow is like a full disk, and its signal ends no process.
    let script = format!("ulimit -f 40; exec {PLAINCALL} run --tools tools.toml --log log --yes");
    let mut child = Command::new("sh")
        .args(["-c", &script])
        .current_dir(scene.path(""))
        .env_clear()
        .envs(scene.environment())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(before.as_bytes()).unwrap();
    wait_until("the end of the first call is in the log", || {
        fs::read_to_string(scene.path("log")).is_ok_and(|log| log.contains("\"result\""))
    });
    stdin.write_all(behind.as_bytes()).unwrap();
    drop(stdin);
    let ended: Ended = child.wait_with_output().unwrap().into();
    check(&ended, 1, &["the log could not be written", "too large"]);
    for part in [
        "the log cannot be written",
        "no further calls start",
        "+ before  deploy  ok",
        "# behind  deploy  cancelled",
    ] {
        assert!(ended.stderr.contains(part), "{part:?} is not in {ended:#?}");
    }
    // The log is readable, and the run can be resumed.
    let options = ["--resume", "log", "reply.txt"];
    let ended: Ended = scene.command(&options).output().unwrap().into();
    assert_eq!(ended.status, Some(0), "{ended:#?}");
    assert!(ended.stdout.contains("2 calls: 2 ok"), "{ended:#?}");
}
