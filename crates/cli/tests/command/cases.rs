//! The files in `cases/`: a command line, its input and its result.
//!
//! The first line is the command line; `'…'` keeps blanks together. Sections follow. A line with `===` begins each of
//! them:
//! `===`:
//!
//! - `=== file NAME`: a file in the directory in which the command runs,
//! - `=== stdin`: its standard input,
//! - `=== status N`, `=== stdout`, `=== stderr`: the result. A missing section is empty.
//!
//! `escaped` at the end of a heading means that `\n`, `\r`, `\t`, `\\` and `\xHH` represent those bytes and that line
//! ends do not count. Output that is not text with a line end is written in this form. With `SNAPSHOTS=overwrite` the
//! result is written instead of compared.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use snapbox::{Data, assert_data_eq};

use crate::command::process::{Ran, run};

#[test]
fn cases() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/cases");
    let mut paths: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    assert!(paths.len() > 30, "the cases were not found");
    // Each is a process that takes most of its time to start and end.
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(path) = paths.get(next.fetch_add(1, Ordering::Relaxed)) {
                    println!("{}", path.display());
                    check(path);
                }
            });
        }
    });
}

fn check(path: &Path) {
    let found = replayed(&fs::read_to_string(path).unwrap());
    assert_data_eq!(found, Data::read_from(path, None).raw());
}

/// Returns the case with the current result of its command line. Its directory is written as `DIR`.
pub(crate) fn replayed(case: &str) -> String {
    let given = match case.find("=== status") {
        Some(at) => &case[..at],
        None => case,
    };
    let (command, sections) = given.split_once('\n').unwrap();
    let directory = tempfile::tempdir().unwrap();
    let mut stdin = Vec::new();
    for section in sections.split("=== ").skip(1) {
        let (heading, text) = section.split_once('\n').unwrap();
        let (heading, bytes) = match heading.strip_suffix(" escaped") {
            Some(heading) => (heading, unescaped(text)),
            None => (heading, text.as_bytes().to_vec()),
        };
        match heading.split_once(' ') {
            Some(("file", name)) => fs::write(directory.path().join(name), bytes).unwrap(),
            _ if heading == "stdin" => stdin = bytes,
            _ => panic!("no section: {heading}"),
        }
    }
    let mut words = words(command);
    assert_eq!(words.remove(0), "plaincall");
    let ran = run(directory.path(), &words, &stdin);
    let place = directory.path().to_str().unwrap();
    format!("{given}{}", outcome(&ran).replace(place, "DIR"))
}

fn outcome(ran: &Ran) -> String {
    let mut text = format!("=== status {}\n", ran.status.unwrap());
    for (name, bytes) in [("stdout", &ran.stdout), ("stderr", &ran.stderr)] {
        match str::from_utf8(bytes) {
            Ok("") => {}
            Ok(plain) if plain.ends_with('\n') && !plain.contains(['\r', '\u{1b}']) => {
                write!(text, "=== {name}\n{plain}").unwrap();
            }
            _ => writeln!(text, "=== {name} escaped\n{}", escaped(bytes)).unwrap(),
        }
    }
    text
}

/// Returns the words of a command line.
fn words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    for (index, part) in line.split('\'').enumerate() {
        if index % 2 == 1 {
            words.push(part.to_owned());
        } else {
            words.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    words
}

fn unescaped(text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut rest = text.bytes().filter(|&byte| byte != b'\n');
    while let Some(byte) = rest.next() {
        if byte != b'\\' {
            bytes.push(byte);
            continue;
        }
        bytes.push(match rest.next() {
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'\\') => b'\\',
            Some(b'x') => {
                let digits = [rest.next().unwrap(), rest.next().unwrap()];
                u8::from_str_radix(str::from_utf8(&digits).unwrap(), 16).unwrap()
            }
            other => panic!("no escape: {other:?}"),
        });
    }
    bytes
}

/// Formats bytes for `unescaped`, with a line for each line.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for chunk in bytes.utf8_chunks() {
        for c in chunk.valid().chars() {
            match c {
                '\n' => text.push_str("\\n\n"),
                '\r' => text.push_str("\\r"),
                '\t' => text.push_str("\\t"),
                '\\' => text.push_str("\\\\"),
                c if c.is_ascii_control() => write!(text, "\\x{:02x}", u32::from(c)).unwrap(),
                c => text.push(c),
            }
        }
        for byte in chunk.invalid() {
            write!(text, "\\x{byte:02x}").unwrap();
        }
    }
    text.trim_end_matches('\n').to_owned()
}
