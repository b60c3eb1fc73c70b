//! A log as lines.

use std::fs;

use snapbox::{Data, assert_data_eq};

use crate::show::scene::{Shown, events, log, names, plaincall, records, show, show_in};

/// With `SNAPSHOTS=overwrite` the files beside the logs are written instead of compared.
#[test]
fn records_in_lines() {
    for name in names() {
        for (options, ending) in [(&[][..], "txt"), (&["--full"], "full.txt")] {
            let shown = show(log(&events(&name)), options);
            assert_eq!(shown.status, Some(0), "{name}: {shown:#?}");
            assert_eq!(shown.stderr, "", "{name}");
            let path = records().join(format!("{name}.{ending}"));
            if ending == "txt" || path.exists() {
                assert_data_eq!(shown.stdout, Data::read_from(&path, None).raw());
            }
        }
    }
}

#[test]
fn nothing_in_a_record_does_anything_to_a_terminal() {
    for options in [&[][..], &["--full"], &["--color", "never"]] {
        let shown = show(log(&events("hostile")), options);
        let is_allowed = |c: char| c == '\n' || !c.is_control();
        assert!(shown.stdout.chars().all(is_allowed), "{options:?}");
        assert!(!shown.stdout.contains('\u{202e}'), "{options:?}");
    }
}

#[track_caller]
fn check(log: impl AsRef<[u8]>, status: i32, stdout: &[&str], stderr: &[&str]) -> Shown {
    let shown = show(log, &[]);
    assert_eq!(shown.status, Some(status), "{shown:#?}");
    for part in stdout {
        assert!(shown.stdout.contains(part), "{part:?} is not in {shown:#?}");
    }
    for part in stderr {
        assert!(shown.stderr.contains(part), "{part:?} is not in {shown:#?}");
    }
    if stderr.is_empty() {
        assert_eq!(shown.stderr, "");
    }
    shown
}

#[test]
fn torn_and_damaged() {
    let whole = log(&events("three-calls"));
    check(&whole, 0, &["3 calls: 3 ok"], &[]);
    // A crash has left half a line.
    let torn = &whole[..whole.len() - 20];
    check(
        torn,
        0,
        &["3 calls: 3 ok", "is incomplete"],
        &["note: run.log: the last line"],
    );
    // A program has changed the line ends.
    check(
        whole.replace('\n', "\r\n"),
        0,
        &["3 calls: 3 ok"],
        &["CR LF"],
    );
    // A byte in the middle was changed: the lines before it are shown.
    let damaged = whole.replacen("2 words", "3 words", 1);
    let shown = check(
        &damaged,
        1,
        &["fetch page", "ok 1.2 s", "damaged"],
        &["error: run.log: line "],
    );
    assert!(!shown.stdout.contains("3 words"));
    // A missing line is reported by its number.
    let mut lines: Vec<&str> = whole.lines().collect();
    lines.remove(5);
    check(lines.join("\n") + "\n", 1, &["Run of"], &["error: "]);
}

#[test]
fn not_to_be_read() {
    check("", 1, &[], &["cannot show run.log: "]);
    check("Just text.\n", 1, &[], &["is not the log of a run"]);
    let mut newer = events("no-calls");
    newer[0]["version"] = 99.into();
    check(log(&newer), 1, &[], &["version 99", "newer"]);
    let directory = tempfile::tempdir().unwrap();
    let shown = show_in(directory.path(), &["nothing.log"], b"");
    assert_eq!(shown.status, Some(1));
    assert!(
        shown
            .stderr
            .contains("there is no file or session `nothing.log`"),
        "{shown:?}"
    );
}

/// The kept logs of all versions.
#[test]
fn kept_logs() {
    let kept = concat!(env!("CARGO_MANIFEST_DIR"), "/../plaincall/tests/log/kept");
    let mut count = 0;
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_none_or(|extension| extension != "jsonl")
        {
            continue;
        }
        let log = fs::read(&path).unwrap();
        for options in [&[][..], &["--full"], &["--html", "-"]] {
            let shown = show(&log, options);
            assert_eq!(shown.status, Some(0), "{}: {shown:#?}", path.display());
            assert!(!shown.stdout.is_empty(), "{}", path.display());
        }
        count += 1;
    }
    assert!(count >= 3, "the logs were not found");
}

/// A reply is read as its run read it, with its own markers and the chosen syntax.
#[test]
fn a_reply_with_its_own_markers() {
    const TOOLS: &str = "[tools.say]\neffect = \"read\"\ncommand = [\"echo\", \"x\"]\n";
    let check = |reply: &str, options: &[&str], expected: &str| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("reply.txt"), reply).unwrap();
        fs::write(directory.path().join("tools.toml"), TOOLS).unwrap();
        let run = [
            "run",
            "reply.txt",
            "--tools",
            "tools.toml",
            "--log",
            "run.log",
        ];
        let ended = plaincall(directory.path(), &[&run, options].concat(), b"");
        assert_eq!(ended.status, Some(0), "{ended:#?}");
        let shown = show_in(directory.path(), &["run.log"], b"");
        assert!(shown.stdout.contains(expected), "{options:?}: {shown:#?}");
        assert!(
            !shown.stdout.contains("could not be found"),
            "{options:?}: {shown:#?}"
        );
    };
    check(
        "One.\n<<call:say:a\n<<end\nTwo.\n",
        &["--dialect", "start=<<call: end=<<end arg=<<value:"],
        "\nOne.\n> say a\nTwo.\n",
    );
    check(
        "One.\n!!!GADGET_STARTk7:say:a\n!!!GADGET_ENDk7\nTwo.\n",
        &["--dialect", "key=k7"],
        "\nOne.\n> say a\nTwo.\n",
    );
    check(
        "A \u{1f6e0}\u{fe0f}[mark].\n!!!GADGET_START:say:a\n!!!GADGET_END\n",
        &["--dialect", "block"],
        "[mark].\n> say a\n",
    );
}

#[test]
fn standard_input() {
    let directory = tempfile::tempdir().unwrap();
    let shown = show_in(
        directory.path(),
        &["-"],
        log(&events("three-calls")).as_bytes(),
    );
    assert_eq!(shown.status, Some(0));
    assert!(shown.stdout.contains("3 calls: 3 ok"));
    assert!(fs::read_dir(directory.path()).unwrap().next().is_none());
}

/// A log can be shown wherever it is truncated.
#[test]
fn a_log_cut_behind_any_line() {
    for name in ["everything", "emoji"] {
        let events = events(name);
        for length in 1..events.len() {
            check(log(&events[..length]), 0, &["Run of"], &[]);
        }
    }
}

#[test]
fn cancelled_calls_are_not_resumed() {
    let mut off = events("interrupted");
    let cancel =
        r#"{"event":"cancel","reason":"the run was cancelled","timed_out":false,"t_ms":400}"#;
    off.push(serde_json::from_str(cancel).unwrap());
    let shown = check(
        log(&off),
        0,
        &["ends as unknown", "it ends as cancelled"],
        &[],
    );
    assert!(!shown.stdout.contains("runs it again"), "{shown:#?}");
}

#[test]
fn attempts_that_all_failed() {
    let directory = tempfile::tempdir().unwrap();
    let tools = "[tools.busy]\neffect = \"read\"\nshell = \"exit 3\"\nretry = { attempts = 2, first_wait = \"1ms\" }\n";
    fs::write(directory.path().join("tools.toml"), tools).unwrap();
    let run = ["run", "--tools", "tools.toml", "--log", "run.log"];
    let reply = b"!!!GADGET_START:busy:b\n!!!GADGET_END\n";
    assert_eq!(plaincall(directory.path(), &run, reply).status, Some(1));
    let shown = show_in(directory.path(), &["run.log"], b"");
    for attempt in ["attempt 1", "attempt 2"] {
        let line = shown.stdout.lines().find(|line| line.contains(attempt));
        assert!(
            line.is_some_and(|line| line.contains(", failed after ")),
            "{shown:#?}"
        );
    }
}

#[test]
fn a_resumed_run() {
    let mut again = events("interrupted");
    let more = [
        r#"{"event":"resumed","t_ms":400}"#,
        r#"{"event":"start","call":0,"id":"a","name":"look","attempt":2,"t_ms":410}"#,
        r#"{"event":"result","call":0,"id":"a","name":"look","status":"ok","output":"x","t_ms":450}"#,
        r#"{"event":"result","call":2,"id":"c","name":"deploy","status":"unknown","error":"not known","t_ms":460}"#,
    ];
    again.extend(more.iter().map(|line| serde_json::from_str(line).unwrap()));
    check(
        log(&again),
        0,
        &[
            "resumed at 0.4 s",
            "attempt 1  at 11 ms, interrupted",
            "attempt 2  at 410 ms, ok after 40 ms",
            "? c  deploy  unknown",
            "1 ok, 1 unknown, 4 interrupted",
        ],
        &[],
    );
}
