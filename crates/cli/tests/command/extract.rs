//! `plaincall extract`: a table of the calls of many texts.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{FileTypeExt as _, symlink};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use crate::command::process::{plaincall, run};

const CALL: &str = "Look.\n!!!GADGET_START:read:a\n!!!ARG:path\na.txt\n!!!GADGET_END\nDone.";

/// Extracts `input` in `folder`, and returns the status, the rows and the messages.
fn extract(folder: &Path, input: &[u8], options: &[&str]) -> (Option<i32>, Vec<Value>, String) {
    let arguments = [&["extract", "-", "--to", "out.jsonl"], options].concat();
    let ran = run(folder, &arguments, input);
    assert_eq!(ran.stdout(), "");
    let rows = fs::read_to_string(folder.join("out.jsonl")).unwrap_or_default();
    let rows = rows.lines().map(|row| serde_json::from_str(row).unwrap());
    (ran.status, rows.collect(), ran.stderr())
}

#[test]
fn rows_on_standard_output() {
    let folder = tempfile::tempdir().unwrap();
    for output in ["-", "/dev/stdout"] {
        let ran = run(
            folder.path(),
            &["extract", "-", "--to", output],
            b"\"Hello\"\n",
        );
        let row: Value = serde_json::from_str(&ran.stdout()).unwrap();
        assert_eq!(
            (ran.status, &row["content"]),
            (Some(0), &json!("Hello")),
            "{}",
            ran.stderr()
        );
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn one_row_for_each_line() {
    let folder = tempfile::tempdir().unwrap();
    let input = format!(
        "\u{feff}{}\n{}\nnot json\n\n{}\n{}\n",
        json!({"id": 7, "text": CALL, "n": 12_345_678_901_234_567_890_u64}),
        json!(CALL),
        json!({"id": 8}),
        json!({"text": "!!!GADGET_START:read\n!!!ARG:path\na.txt\n", "calls": 1}),
    );
    let (status, rows, messages) = extract(folder.path(), input.as_bytes(), &[]);
    assert_eq!(status, Some(1), "{messages}");
    let call = json!({
        "index": 0, "name": "read", "id": "a", "dependencies": [], "arguments": r#"{"path":"a.txt"}"#,
        "syntax": "block", "termination": "explicit", "may_run": true, "error": null, "codes": [],
        "start": 6, "end": 60,
    });
    let (content, calls, error) = ("Look.\n\nDone.", json!([call]), Value::Null);
    let expected = json!({
        "id": 7, "text": CALL, "n": 12_345_678_901_234_567_890_u64,
        "content": content, "calls": calls, "error": error,
    });
    assert_eq!(rows[0], expected);
    let expected = json!({"content": content, "calls": calls, "error": error});
    assert_eq!(rows[1], expected);
    let error = "line 3: not JSON: expected ident at byte 2";
    let expected = json!({"content": null, "calls": null, "error": error});
    assert_eq!(rows[2], expected);
    assert_eq!(rows[3]["error"], "line 4: the line is empty");
    let error = "line 5: missing key `text`";
    let expected = json!({"id": 8, "content": null, "calls": null, "error": error});
    assert_eq!(rows[4], expected);
    assert_eq!(rows[5]["calls"][0]["may_run"], false);
    assert_eq!(rows[5]["calls"][0]["termination"], "end_of_stream");
    assert!(rows[5]["calls"][0]["error"].is_string());
    assert_eq!(rows.len(), 6);
    let summary = "note: 6 lines, 3 invalid (50.0 %); 3 calls, 1 that may not run (33.3 %)";
    assert!(messages.starts_with(summary), "{messages}");

    let (_, complete, _) = extract(folder.path(), input.as_bytes(), &["--complete"]);
    assert_eq!(complete[5]["calls"][0]["may_run"], true);
    let (_, _, messages) = extract(folder.path(), b"\"a\"\n", &["--quiet"]);
    assert_eq!(messages, "");
}

#[test]
fn definitions_validate_calls() {
    let folder = tempfile::tempdir().unwrap();
    let definition = json!({"name": "read", "input_schema": {
        "type": "object", "properties": {"path": {"type": "integer"}}, "required": ["path"],
    }});
    fs::write(folder.path().join("tools.json"), definition.to_string()).unwrap();
    let input = json!({"content": "old", "text": CALL}).to_string();
    let options = ["--tools", "tools.json"];
    let (status, rows, messages) = extract(folder.path(), input.as_bytes(), &options);
    assert_eq!(status, Some(0), "{messages}");
    assert_eq!(rows[0]["content"], "Look.\n\nDone.");
    let call = &rows[0]["calls"][0];
    assert_eq!(call["may_run"], false);
    assert_eq!(call["arguments"], Value::Null);
    let code = call["codes"][0].as_str().unwrap();
    let rate = format!("; diagnostics: {code} 1 (100.0 %)\n");
    assert!(messages.ends_with(&rate), "{messages}");
}

/// In `extract` and in `parse --format openai`, as in a run.
#[test]
fn calls_in_reasoning_are_not_counted() {
    let folder = tempfile::tempdir().unwrap();
    let other = CALL.replace(":a\n", ":b\n");
    for (text, options, expected) in [
        (format!("<think>{CALL}</think>{other}"), &[][..], &["b"][..]),
        (
            format!("<think>{CALL}</think>{other}"),
            &["--dialect", "no-reasoning"],
            &["a", "b"],
        ),
        // The opening of another model's reasoning.
        (
            format!("<think>{CALL}</think>{other}"),
            &["--dialect", "reasoning=<t>,</t>"],
            &["b"],
        ),
        (
            format!("<t>{CALL}</t>{other}"),
            &["--dialect", "reasoning=<t>,</t>"],
            &["b"],
        ),
        (
            format!("{CALL}</think>{other}"),
            &["--dialect", "in-reasoning"],
            &["b"],
        ),
    ] {
        let (_, rows, messages) =
            extract(folder.path(), json!(text).to_string().as_bytes(), options);
        let calls = rows[0]["calls"].as_array().unwrap().iter();
        let calls = calls.filter(|call| call["may_run"] == true);
        let ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{text} {options:?} {messages}");

        let arguments = [&["parse", "--format", "openai"], options].concat();
        let printed = run(folder.path(), &arguments, text.as_bytes()).stdout();
        let printed: Value = serde_json::from_str(&printed).unwrap();
        let calls = printed.as_array().unwrap().iter();
        let ids: Vec<&str> = calls.map(|call| call["id"].as_str().unwrap()).collect();
        assert_eq!(ids, expected, "{text} {options:?}");
    }
    let text = format!("<think>{CALL}</think>{other}");
    let raw = run(folder.path(), &["parse"], text.as_bytes()).stdout();
    assert_eq!(raw.matches("\"type\":\"call\"").count(), 2, "{raw}");
}

/// Each row has the calls that `parse` finds.
#[test]
fn agrees_with_parse() {
    let folder = tempfile::tempdir().unwrap();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conformance");
    let mut texts = Vec::new();
    for topic in ["block", "common", "emoji", "limits"] {
        let cases = fs::read_to_string(examples.join(format!("{topic}.json"))).unwrap();
        let cases: Value = serde_json::from_str(&cases).unwrap();
        let cases = cases["cases"].as_array().unwrap();
        let found = cases.iter().filter(|case| case["operation"] == "read");
        texts.extend(found.filter_map(|case| case["input"].as_str().map(str::to_owned)));
    }
    assert!(texts.len() > 50, "{}", texts.len());
    let lines: Vec<String> = texts.iter().map(|text| json!(text).to_string()).collect();
    let input = lines.join("\n");
    // `parse` leaves reasoning off.
    let (status, rows, messages) = extract(
        folder.path(),
        input.as_bytes(),
        &["--dialect", "no-reasoning"],
    );
    assert_eq!((status, rows.len()), (Some(0), texts.len()), "{messages}");
    let parsed = run(folder.path(), &["parse", "--jsonl"], input.as_bytes());
    for (row, parsed) in rows.iter().zip(parsed.stdout().lines()) {
        let parsed: Value = serde_json::from_str(parsed).unwrap();
        let segments = parsed["segments"].as_array().unwrap();
        let of = |kind| segments.iter().filter(move |it| it["type"] == kind);
        let content: String = of("text").filter_map(|it| it["text"].as_str()).collect();
        assert_eq!(row["content"], content);
        let calls = row["calls"].as_array().unwrap();
        assert_eq!(calls.len(), of("call").count());
        for (call, segment) in calls.iter().zip(of("call")) {
            assert_eq!(json!([call["start"], call["end"]]), segment["span"]);
            assert_eq!(call["termination"], segment["termination"]);
            let written = &segment["call"];
            let arguments = match call["arguments"].as_str() {
                Some(arguments) => serde_json::from_str(arguments).unwrap(),
                None => Value::Null,
            };
            let emoji = json!({"raw_args": written["raw_args"], "body": written["body"]});
            match call["syntax"].as_str() {
                Some("emoji") => assert_eq!(arguments, emoji),
                _ => assert_eq!(arguments, written["parameters"]),
            }
        }
    }
}

/// Waits for another process.
#[expect(clippy::disallowed_methods, reason = "no task waits for this thread")]
fn sleep(milliseconds: u64) {
    std::thread::sleep(Duration::from_millis(milliseconds));
}

/// The file is replaced at the end only, and nothing is left behind.
#[test]
fn an_interrupted_job_changes_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("out.jsonl");
    fs::write(&out, "before").unwrap();
    let mut command = plaincall();
    command.args(["extract", "-", "--to", "out.jsonl"]);
    command.current_dir(folder.path()).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"\"a\"\n").unwrap();
    let begun = Instant::now();
    // The second file shows that the job has begun.
    while fs::read_dir(folder.path()).unwrap().count() < 2 {
        assert!(begun.elapsed() < Duration::from_mins(1));
        sleep(5);
    }
    sleep(200);
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert_eq!(fs::read_to_string(&out).unwrap(), "before");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);

    let ran = run(
        folder.path(),
        &["extract", "-", "--to", "no/out.jsonl"],
        b"",
    );
    assert_eq!(ran.status, Some(1));
    let message = "error: cannot write no/out.jsonl: no such file or directory\n";
    assert_eq!(ran.stderr(), message);
}

/// A link is followed, and a device is written to.
#[test]
fn special_outputs_stay() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("out.jsonl"), "before").unwrap();
    symlink("out.jsonl", at("link")).unwrap();
    for (target, stdout) in [("link", ""), ("/dev/stdout", "{"), ("/dev/null", "")] {
        let ran = run(folder.path(), &["extract", "-", "--to", target], b"\"a\"");
        assert_eq!(ran.status, Some(0), "{}", ran.stderr());
        assert!(ran.stdout().starts_with(stdout), "{}", ran.stdout());
    }
    assert!(at("link").is_symlink());
    let row = fs::read_to_string(at("out.jsonl")).unwrap();
    assert!(row.starts_with(r#"{"content":"a""#), "{row}");
    assert!(
        fs::metadata("/dev/null")
            .unwrap()
            .file_type()
            .is_char_device()
    );
}

#[test]
fn the_error_for_parquet_names_the_package() {
    for (input, output) in [("a.jsonl", "b.parquet"), ("a.parquet", "b.jsonl")] {
        let arguments = ["extract", input, "--to", output];
        let ran = run(Path::new("."), &arguments, b"");
        assert_eq!(ran.status, Some(2));
        assert!(
            ran.stderr()
                .contains(".parquet: Parquet is not supported; use `table`"),
            "{}",
            ran.stderr()
        );
    }
}

/// The memory does not grow with the number of lines.
#[test]
fn memory_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = plaincall();
    command.args(["extract", "-", "--to", "out.jsonl"]);
    command.current_dir(folder.path()).stdin(Stdio::piped());
    let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let line = json!({"text": CALL.repeat(16)}).to_string() + "\n";
    let mut most = |bytes: usize| -> usize {
        for _ in 0..bytes / line.len() {
            stdin.write_all(line.as_bytes()).unwrap();
        }
        let status = fs::read_to_string(&status).unwrap();
        let most = status.split("VmHWM:").nth(1).unwrap();
        most.split_whitespace().next().unwrap().parse().unwrap()
    };
    let (few, many) = (most(1 << 20), most(16 << 20));
    assert!(many < few + 4096, "{few} kB, {many} kB");
    drop(stdin);
    assert!(child.wait().unwrap().success());
}
