//! The examples in `docs/`.

use std::fs;
use std::path::Path;

use crate::run::scene::Scene;

/// Returns the fenced examples of a document whose first line begins with these words, with their line numbers.
pub(crate) fn fences(document: &str, language: &str) -> Vec<(usize, String, String)> {
    let mut found = Vec::new();
    let mut open: Option<(usize, String, String)> = None;
    for (index, line) in document.lines().enumerate() {
        match (&mut open, line.strip_prefix("```")) {
            (None, Some(info)) => open = Some((index + 1, info.to_owned(), String::new())),
            (Some(_), Some(_)) => found.extend(open.take()),
            (Some((.., text)), None) => {
                text.push_str(line);
                text.push('\n');
            }
            (None, None) => {}
        }
    }
    found.retain(|(_, info, _)| info.split(' ').next() == Some(language));
    found
}

pub(crate) fn document(name: &str) -> String {
    fs::read_to_string(
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../../docs")
            .join(name),
    )
    .unwrap()
}

/// Each `toml` example is a valid tools file. `every_reply_runs` runs the `reply` examples after them and compares
/// their `output`.
fn check(name: &str, at_least: usize) {
    let document = document(name);
    let tools = fences(&document, "toml");
    assert!(
        tools.len() >= at_least,
        "{name} has {} tools files",
        tools.len()
    );
    for (line, _, text) in &tools {
        let read = plaincall::read_tools(text, "/home/me/tools.toml");
        if let Err(error) = read {
            panic!("docs/{name}:{line}: {error}");
        }
    }
}

#[test]
fn every_tools_file_can_be_read() {
    check("writing-tools.md", 8);
    check("approval-and-limits.md", 3);
    check("tool-examples.md", 5);
}

/// Runs every example that has a reply: a `toml` fence, then a `reply` fence, then an `output` fence, whose lines
/// must all be in the output of the run.
#[test]
fn every_reply_runs() {
    let mut count = 0;
    for name in [
        "writing-tools.md",
        "approval-and-limits.md",
        "tool-examples.md",
    ] {
        let document = document(name);
        let tools = fences(&document, "toml");
        let outputs = fences(&document, "output");
        for (line, _, reply) in fences(&document, "reply") {
            let before = |(at, ..): &&(usize, String, String)| *at < line;
            let (.., tools) = tools
                .iter()
                .rfind(before)
                .expect("a tools file is before the reply");
            let after = |(at, ..): &&(usize, String, String)| *at > line;
            let (.., output) = outputs
                .iter()
                .find(after)
                .expect("the output is after the reply");
            let ended = Scene::with_tools(reply, tools).run(&["--full", "--yes"]);
            for expected in output.lines() {
                assert!(
                    ended.stdout.contains(expected.trim()),
                    "docs/{name}:{line}: {expected:?} is not in\n{}{}",
                    ended.stdout,
                    ended.stderr
                );
            }
            count += 1;
        }
    }
    assert!(count >= 6, "{count} replies");
}
