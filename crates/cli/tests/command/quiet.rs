//! `--quiet`: only results and errors.

use std::process::Command;

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");

/// Runs the command in a folder of `examples/`, and returns its exit status and outputs.
fn run(folder: &str, arguments: &[&str]) -> (Option<i32>, String, String) {
    let state = tempfile::tempdir().unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_plaincall"))
        .args(arguments)
        .current_dir(format!("{ROOT}/{folder}"))
        .env("HOME", state.path())
        .env_remove("XDG_CONFIG_HOME")
        .env_remove("XDG_STATE_HOME")
        .output()
        .unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

const ASK: [&str; 6] = [
    "ask",
    "-m",
    "replay:replies.jsonl",
    "-t",
    "tools.toml",
    "Which day had the strongest wind?",
];

#[test]
fn ask_prints_only_the_answer() {
    let (status, answer, notes) = run("agent", &ASK);
    assert_eq!(status, Some(0), "{notes}");
    assert!(!notes.is_empty());
    let quiet = run("agent", &[&ASK[..], &["--quiet"]].concat());
    assert_eq!(quiet, (Some(0), answer, String::new()));
}

#[test]
fn errors_are_still_printed() {
    let (status, output, messages) = run("agent", &["-q", "ask", "-m", "replay:missing", "Hello"]);
    assert_eq!((status, output.as_str()), (Some(1), ""));
    assert!(messages.contains("missing"), "{messages}");
}

#[test]
fn run_prints_only_results() {
    let arguments = ["run", "reply.txt", "-t", "tools.toml", "-y"];
    let (status, output, messages) = run("harbour", &arguments);
    assert_eq!(status, Some(0), "{messages}");
    assert!(messages.contains("started"), "{messages}");
    let rest = output.strip_prefix("Results\n").unwrap();
    let (results, _) = rest.split_once("\n\nTimeline\n").unwrap();
    let (status, quiet, messages) = run("harbour", &[&arguments[..], &["-q"]].concat());
    assert_eq!((status, messages.as_str()), (Some(0), ""));
    let quiet = quiet.strip_prefix("Results\n").unwrap();
    assert!(!quiet.contains("started"), "{quiet}");
    // Only the times differ.
    assert_eq!(quiet.lines().count(), results.lines().count(), "{quiet}");
}
