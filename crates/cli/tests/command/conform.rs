//! `plaincall conform`: our own parser through the public interface, and parsers with errors.

use std::fs;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::process::{plaincall, run};

const OURS: [&str; 4] = ["--", env!("CARGO_BIN_EXE_plaincall"), "conform", "--answer"];

/// Runs `conform` with these options against this parser: status, standard output and standard error.
fn conform(options: &[&str], parser: &[&str]) -> (Option<i32>, String, String) {
    let ran = run(
        &std::env::temp_dir(),
        &[&["conform"], options, parser].concat(),
        b"",
    );
    (ran.status, ran.stdout(), ran.stderr())
}

/// A parser in the shell: the script gets each question as `$line`.
fn shell(script: &str) -> [String; 4] {
    let script = format!("while IFS= read -r line; do {script}; done");
    ["--", "/bin/sh", "-c", &script].map(str::to_owned)
}

fn conform_shell(options: &[&str], script: &str) -> (Option<i32>, String, String) {
    let parser = shell(script);
    conform(options, &parser.each_ref().map(String::as_str))
}

#[test]
fn our_parser_conforms() {
    let (status, output, error) = conform(&["--free"], &OURS);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    let checks: Vec<usize> = output
        .split(|c: char| !c.is_ascii_digit())
        .filter_map(|number| number.parse().ok())
        .collect();
    let [examples, passed, failed, unsupported] = checks[..] else {
        panic!("{output}");
    };
    assert!(examples > 350 && passed > examples, "{output}");
    assert_eq!((failed, unsupported), (0, 0), "{output}");
    // Each topic has its own examples.
    for topic in ["common", "block", "emoji", "limits"] {
        let (status, output, _) = conform(&["--free", "--id", topic], &OURS);
        assert_eq!(status, Some(0));
        assert!(
            !output.starts_with("0 ") && !output.starts_with(&examples.to_string()),
            "{output}"
        );
    }
}

#[test]
fn a_wrong_answer_is_shown() {
    let answer = r#"echo '{"events":[{"type":"text","text":"Begin"}],"calls":[]}'"#;
    let (status, output, error) = conform_shell(&["--id", "block/2.2/1"], answer);
    assert_eq!((status, error.as_str()), (Some(1), ""));
    assert_eq!(
        output,
        r#"block/2.2/1 events
  input
    "Begin with `!!!GADGET_START:` and\nthe name."
  expected
    {"type":"text","text":"Begin with `!!!GADGET_START:"}
    {"type":"diagnostic","code":"not_a_header","text":"!!!GADGET_START:"}
    {"type":"text","text":"` and\nthe name."}
  found
    {"type":"text","text":"Begin"}

1 example: 1 checks passed, 1 failed, 0 not supported
"#
    );
}

#[test]
fn examples_are_selected_and_failures_counted() {
    let two = ["--id", "block/2.2/1", "--id", "emoji/2.1/1"];
    let (status, output, error) = conform(&two, &[]);
    assert_eq!((status, error.as_str()), (Some(0), ""));
    let ids = output.lines().map(|line| {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        case["id"].as_str().unwrap().to_owned()
    });
    assert!(ids.eq(["block/2.2/1", "emoji/2.1/1"]), "{output}");
    let more = " more failed; use `--full` to print them\n";
    for (options, has_more) in [
        (&["--id", "block"][..], true),
        (&["--id", "block", "--full"], false),
    ] {
        let (status, output, _) = conform_shell(options, r#"echo '{"events":[],"calls":[]}'"#);
        assert_eq!(status, Some(1));
        assert_eq!(output.contains(more), has_more, "{output}");
    }
}

/// Text may be split anywhere; keys beyond those of the example do not matter; keys that the example requires to be
/// absent must be absent.
#[test]
fn answers_are_compared_as_the_definition_requires() {
    let one = ["--id", "block/2.1/1"];
    let events = |call: &str| {
        let text = r#"{"type":"text","text":"I'"'"'ll "},{"type":"text","text":""},{"type":"text","text":"look: "}"#;
        format!(r#"echo '{{"events":[{text},{call},{{"type":"end","termination":"explicit"}}]}}'"#)
    };
    let rows = [
        (r#"{"type":"call","name":"Look","span":[1,2]}"#, 0),
        (
            r#"{"type":"call","name":"Look","id":null,"dependencies":[]}"#,
            0,
        ),
        (r#"{"type":"call","name":"Look","id":"a"}"#, 1),
        (r#"{"type":"call","name":"look"}"#, 1),
    ];
    for (call, expected) in rows {
        let (status, output, _) = conform_shell(&one, &events(call));
        assert_eq!(status, Some(expected), "{call}\n{output}");
    }
}

#[test]
fn unsupported_operations_are_not_failures() {
    let (status, output, _) = conform_shell(
        &["--id", "emoji"],
        r#"echo '{"unsupported":["events","calls","text","refused","near"]}'"#,
    );
    assert_eq!(status, Some(0));
    assert!(output.contains(" 0 checks passed, 0 failed, "), "{output}");
}

#[test]
fn a_parser_that_ends_hangs_or_writes_something_else() {
    let rows = [
        (
            "exit 3",
            "error: common/4/1: the parser ended without an answer (unexpected end of file)\n",
        ),
        (
            "sleep 300",
            "error: common/4/1: the parser did not answer within 1 s; use `--timeout` to allow more time\n",
        ),
        (
            "echo 1",
            "error: common/4/1: the parser answered with JSON that is not an object\n",
        ),
    ];
    for (script, expected) in rows {
        let (status, _, error) = conform_shell(&["--timeout", "1"], script);
        assert_eq!((status, error.as_str()), (Some(1), expected));
    }
    let (status, _, error) = conform(&[], &["--", "/nowhere/parser"]);
    assert_eq!(status, Some(1));
    assert!(
        error.starts_with("error: cannot start /nowhere/parser: "),
        "{error}"
    );
    let (status, _, error) = conform(&["--id", "nothing"], &OURS);
    assert_eq!(status, Some(2));
    assert!(
        error.starts_with("error: no example matches the options\n"),
        "{error}"
    );
}

/// Ctrl-C ends the parser and the processes that it has started.
#[test]
fn interrupted() {
    let folder = tempfile::tempdir().unwrap();
    let mut child = plaincall()
        .current_dir(folder.path())
        .args([
            "conform",
            "--",
            "/bin/sh",
            "-c",
            "sleep 300 & echo $! > pid; wait",
        ])
        .env("PATH", "/usr/bin:/bin")
        .spawn()
        .unwrap();
    let begun = Instant::now();
    let wait = |what: &str| {
        assert!(begun.elapsed() < Duration::from_mins(1), "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    };
    let pid = loop {
        match fs::read_to_string(folder.path().join("pid")) {
            Ok(text) if text.ends_with('\n') => break text.trim().to_owned(),
            _ => wait("it does not start"),
        }
    };
    let id = Pid::from_raw(child.id().try_into().unwrap()).unwrap();
    kill_process(id, Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    while fs::exists(format!("/proc/{pid}")).unwrap() {
        wait("a process is left");
    }
}
