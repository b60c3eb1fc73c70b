//! Logs, and the output of `show` for them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use plaincall::{RunEvent, log::LineEncoder};
use serde_json::Value;

/// The directory of the logs.
pub(crate) fn records() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/show/records")
}

/// The names of all logs.
pub(crate) fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(records())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| Some(name.strip_suffix(".jsonl")?.to_owned()))
        .collect();
    names.sort();
    assert!(names.len() >= 7, "the records were not found");
    names
}

/// The events of a log, as JSON.
pub(crate) fn events(name: &str) -> Vec<Value> {
    let text = fs::read_to_string(records().join(format!("{name}.jsonl"))).unwrap();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

/// The log that a run with these events writes.
pub(crate) fn log(events: &[Value]) -> String {
    let mut encoder = LineEncoder::default();
    events
        .iter()
        .map(|event| {
            let event: RunEvent = serde_json::from_value(event.clone()).unwrap();
            encoder.next_line(&event)
        })
        .collect()
}

/// The result of the command.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// Shows a log, as the file `run.log` in a separate directory.
pub(crate) fn show(log: impl AsRef<[u8]>, options: &[&str]) -> Shown {
    let directory = tempfile::tempdir().unwrap();
    fs::write(directory.path().join("run.log"), log).unwrap();
    show_in(directory.path(), &[&["run.log"], options].concat(), b"")
}

/// Runs `show` in a directory, with this standard input.
pub(crate) fn show_in(directory: &Path, arguments: &[&str], stdin: &[u8]) -> Shown {
    plaincall(directory, &[&["show"], arguments].concat(), stdin)
}

/// Runs the command in a directory, with this standard input and only the environment that tools need.
#[allow(
    clippy::disallowed_methods,
    reason = "a tool's program is looked for where the tests' programs are"
)]
pub(crate) fn plaincall(directory: &Path, arguments: &[&str], stdin: &[u8]) -> Shown {
    let mut child = Command::new(env!("CARGO_BIN_EXE_plaincall"))
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("TMPDIR", directory)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // A command that does not read it has ended by then.
    let _ = child.stdin.take().unwrap().write_all(stdin);
    let output = child.wait_with_output().unwrap();
    Shown {
        status: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}
