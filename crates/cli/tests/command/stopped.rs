//! Commands that are interrupted.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::process::{Child, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use crate::command::process::plaincall;

/// A running command with pipes to it and from it.
fn started(arguments: &[&str]) -> Child {
    plaincall()
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Asserts that the standard error of a command is empty.
fn assert_no_errors(child: &mut Child, arguments: &[&str]) {
    let mut stderr = String::new();
    let mut pipe = child.stderr.take().unwrap();
    pipe.read_to_string(&mut stderr).unwrap();
    assert_eq!(stderr, "", "{arguments:?}");
}

#[test]
fn interrupted() {
    for arguments in [&["parse", "--events"][..], &["parse"], &["check"]] {
        let mut child = started(arguments);
        let mut stdin = child.stdin.take().unwrap();
        stdin.write_all(b"text").unwrap();
        if arguments.contains(&"--events") {
            // The event shows that the process is running.
            let mut line = String::new();
            let mut stdout = BufReader::new(child.stdout.take().unwrap());
            stdout.read_line(&mut line).unwrap();
            assert_eq!(
                line,
                "{\"type\":\"text\",\"span\":[0,4],\"text\":\"text\"}\n"
            );
        } else {
            wait_until_reading(&child);
        }
        kill_process(Pid::from_child(&child), Signal::INT).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?}");
        assert_no_errors(&mut child, arguments);
    }
}

/// Waits until the process has read its input and waits for more.
fn wait_until_reading(child: &Child) {
    let state = format!("/proc/{}/stat", child.id());
    let wait = format!("/proc/{}/wchan", child.id());
    for _ in 0..100_000 {
        let is_asleep = std::fs::read_to_string(&state).is_ok_and(|state| state.contains(") S "));
        let waits = std::fs::read_to_string(&wait).unwrap_or_default();
        if is_asleep && (waits.contains("pipe") || waits == "0" || waits.is_empty()) {
            std::thread::yield_now();
            if handles_interrupts(child) {
                return;
            }
        }
        std::thread::yield_now();
    }
    panic!("the process never waited for input");
}

/// Returns whether the process has a handler for Ctrl-C.
fn handles_interrupts(child: &Child) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap();
    let caught = status
        .lines()
        .find_map(|line| line.strip_prefix("SigCgt:"))
        .and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok());
    caught.is_some_and(|mask| mask & 0b10 != 0)
}

/// The reader of the output may stop at any time; that is not an error.
#[test]
fn closed_pipe() {
    let prose = "word !!!GADGET_END ".repeat(200_000);
    for (arguments, status) in [
        (&["parse", "--events"][..], 0),
        (&["parse"], 0),
        (&["parse", "--format", "text"], 0),
        (&["check"], 0),
        (&["check", "--deny-warnings"], 1),
    ] {
        let mut child = started(arguments);
        let mut stdin = child.stdin.take().unwrap();
        let mut stdout = child.stdout.take().unwrap();
        let text = prose.clone();
        let writer = std::thread::spawn(move || stdin.write_all(text.as_bytes()));
        let mut first = [0; 10];
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        assert_eq!(child.wait().unwrap().code(), Some(status), "{arguments:?}");
        assert_no_errors(&mut child, arguments);
        // The process may have been stopped before it had read everything.
        let _ = writer.join().unwrap();
    }
}

#[test]
fn full_disk() {
    let full = std::fs::OpenOptions::new()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let mut child = plaincall()
        .args(["parse", "-"])
        .stdin(Stdio::null())
        .stdout(full)
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(1));
    let mut stderr = String::new();
    child
        .stderr
        .take()
        .unwrap()
        .read_to_string(&mut stderr)
        .unwrap();
    assert_eq!(
        stderr,
        "error: cannot write to standard output: no space left on device\n"
    );
}

/// Events are printed while the input is still open.
#[test]
fn events_come_at_once() {
    let mut child = plaincall()
        .args(["parse", "--events"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    for (piece, expected) in [
        (
            "a!!!GADGET_ST",
            r#"{"type":"text","span":[0,1],"text":"a"}"#,
        ),
        (
            "ART:A\n",
            r#"{"type":"call_start","span":[1,19],"syntax":"block","name":"A","id":null,"dependencies":[],"source":"!!!GADGET_START:A\n"}"#,
        ),
        (
            "!!!ARG:x\n",
            r#"{"type":"value_start","span":[19,28],"pointer":"x","source":"!!!ARG:x\n"}"#,
        ),
        (
            "value\n",
            r#"{"type":"value_delta","span":[28,33],"text":"value"}"#,
        ),
    ] {
        stdin.write_all(piece.as_bytes()).unwrap();
        assert_eq!(lines.next().unwrap().unwrap(), expected);
    }
    drop(stdin);
    assert_eq!(lines.count(), 2);
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
