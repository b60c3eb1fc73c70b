//! Large texts on one line.

use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use crate::command::process::{Ran, run_command};

const MIB: usize = 1 << 20;

/// The memory limit beyond the command's own needs, in MiB. A copy of the text would exceed it.
const SPARE: usize = 6;

/// The memory that the command itself needs, in MiB. Most of it is code, which grows.
fn own() -> usize {
    static OWN: OnceLock<usize> = OnceLock::new();
    *OWN.get_or_init(|| {
        let is_enough = |mib: &usize| run_within(*mib, "parse --events", b"a").status == Some(0);
        (16..256).step_by(2).find(is_enough).unwrap() + SPARE
    })
}

/// Runs the command with limited address space, which includes its own size and that of the shell.
fn run_within(mib: usize, arguments: &str, stdin: &[u8]) -> Ran {
    let program = env!("CARGO_BIN_EXE_plaincall");
    let script = format!("ulimit -v {} && exec '{program}' {arguments}", mib * 1024);
    run_command(Command::new("sh").args(["-c", &script]), stdin)
}

/// A line of prose that sometimes contains the beginning of a marker.
fn prose(len: usize) -> Vec<u8> {
    b"the quick brown fox !!! jumps over !!!GADGET_ the lazy dog "
        .iter()
        .copied()
        .cycle()
        .take(len)
        .collect()
}

fn call(len: usize) -> Vec<u8> {
    let mut text = b"!!!GADGET_START:A\n!!!ARG:x\n".to_vec();
    text.extend(prose(len));
    text.extend(b"\n!!!GADGET_END\n");
    text
}

/// The memory is a small multiple of the text; events keep no text.
fn check(len: usize, most: Duration) {
    let begun = Instant::now();
    let mib = len / MIB;
    let ran = run_within(3 * mib + own(), "parse", &prose(len));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr());
    assert!(ran.stdout.len() > len);

    // A value is printed twice: as written and as converted.
    let ran = run_within(6 * mib / 4 + own(), "parse", &call(len / 4));
    assert_eq!(ran.status, Some(0), "{}", ran.stderr());
    assert!(ran.stdout.len() > len / 2);

    for arguments in ["parse --events", "parse --format text"] {
        let ran = run_within(own(), arguments, &prose(len));
        assert_eq!(ran.status, Some(0), "{arguments}: {}", ran.stderr());
        assert!(ran.stdout.len() > len);
    }
    let took = begun.elapsed();
    assert!(took < most, "{took:?}");
}

#[test]
fn long_line() {
    check(16 * MIB, Duration::from_mins(4));
}

/// The same with a gibibyte: `cargo test --release -p plaincall-cli command:: -- --ignored`.
#[test]
#[ignore = "takes a minute in a release build and needs 8 GiB of memory"]
fn very_long_line() {
    check(1024 * MIB, Duration::from_mins(10));
}

/// Each diagnostic costs the same at any position on a line of any length.
#[test]
fn many_diagnostics_on_one_line() {
    let text = "word !!!GADGET_END ".repeat(20_000);
    let begun = Instant::now();
    let ran = run_within(512, "check", text.as_bytes());
    assert_eq!(ran.status, Some(0), "{}", ran.stderr());
    let last = "standard input: no calls, no errors, 20000 warnings\n";
    assert!(ran.stdout().ends_with(last));
    assert!(ran.stdout().lines().all(|line| line.len() < 200));
    assert!(begun.elapsed() < Duration::from_mins(2));
}
