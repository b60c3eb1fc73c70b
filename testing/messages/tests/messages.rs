//! The compiler's messages about each wrong program.
//!
//! `SNAPSHOTS=overwrite cargo test -p plaincall-messages` writes them anew.

#![allow(
    clippy::expect_used,
    clippy::disallowed_methods,
    reason = "a test fails by a panic, and reads whether to write the expected messages"
)]

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// Each compiler adds its own text to the messages, so only those of one are compared.
const COMPILER: &str = concat!("rustc ", env!("CARGO_PKG_RUST_VERSION"), ".");

#[test]
fn of_the_compiler() {
    let compiler = Command::new("rustc").arg("--version").output();
    let compiler = compiler.expect("the compiler that has built this").stdout;
    if !String::from_utf8_lossy(&compiler).starts_with(COMPILER) {
        return;
    }
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples");
    let files = fs::read_dir(&folder).expect("the wrong programs");
    let files = files.map(|file| file.expect("a wrong program").path());
    let mut names: Vec<String> = files
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    let messages = messages(&names);
    let is_overwritten = std::env::var_os("SNAPSHOTS").is_some_and(|word| word == "overwrite");
    let mut wrong = Vec::new();
    for name in names {
        let of_program = messages.iter().filter(|(program, _)| *program == name);
        let found: Vec<&str> = of_program.map(|(_, message)| &**message).collect();
        let found = found.join(
            "
",
        );
        let path = folder.join(format!("{name}.stderr"));
        if is_overwritten {
            fs::write(&path, &found).expect("a file that can be written");
        }
        let expected = fs::read_to_string(&path).unwrap_or_default();
        if found.is_empty() || found != expected {
            wrong.push(format!("{name}, expected:\n{expected}\nfound:\n{found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The errors of each program, in order.
fn messages(names: &[String]) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    // Of the whole workspace, so that what is built for its tests is used again: `trybuild` would build every dependency again.
    let mut build = Command::new(env!("CARGO"));
    build
        .current_dir(root)
        .args(["build", "--workspace", "--keep-going"]);
    build.args([
        "--features",
        "plaincall-messages/wrong",
        "--message-format",
        "json",
    ]);
    build.args(names.iter().flat_map(|name| ["--example", name]));
    let output = build.output().expect("cargo");
    let stdout = String::from_utf8(output.stdout).expect("JSON lines");
    let lines = stdout
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok());
    let messages = lines.filter_map(|line: Value| {
        let program = line.pointer("/target/name")?.as_str()?.to_owned();
        let message = line.get("message")?;
        // The last one of each program counts the others.
        let has_place = !message.get("spans")?.as_array()?.is_empty();
        let is_error = message.get("level")? == "error" && has_place;
        let rendered = message.get("rendered")?.as_str()?;
        is_error.then(|| (program, without_numbers(rendered)))
    });
    let messages: Vec<(String, String)> = messages.collect();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!messages.is_empty(), "no messages:\n{stderr}");
    messages
}

/// A message without the numbers of lines, which change with every edit of `plaincall`.
fn without_numbers(rendered: &str) -> String {
    let lines = rendered
        .lines()
        .filter(|line| !line.contains("the full name for the type"));
    let plain = lines.map(|line| match line.split_once("--> ") {
        Some((_, place)) => format!("  --> {}", place.split(':').next().unwrap_or(place)),
        None => match line.split_once('|') {
            Some((number, rest)) if number.trim().chars().all(|c| c.is_ascii_digit()) => {
                format!("  |{rest}")
            }
            _ => line.to_owned(),
        },
    });
    let plain: Vec<String> = plain.collect();
    plain.join("\n").trim_end().to_owned() + "\n"
}
