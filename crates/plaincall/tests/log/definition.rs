//! The examples of `spec/log.md` are lines in their exact form.
//!
//! All `json` examples together, in order, are one log. With `SPEC=overwrite` their numbers and checksums are written
//! to the document.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::{env, fs};

use plaincall::{
    RunEvent,
    log::{LineEncoder, read_log},
};
use serde_json::Value;

const OPEN: &str = "```json";
const CLOSE: &str = "```";

/// Fields that are described once for all events.
const EVERYWHERE: &[&str] = &["n", "event", "crc", "call", "id", "name", "t_ms"];

fn document() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/log.md")
}

/// Returns the document, with each line of its examples read and written again.
fn rewritten(text: &str) -> String {
    let mut encoder = LineEncoder::default();
    let mut is_example = false;
    let mut rewritten = String::new();
    for line in text.split_inclusive('\n') {
        let was_example = is_example;
        is_example = match line.trim_end() {
            OPEN => true,
            CLOSE => false,
            _ => is_example,
        };
        if is_example && was_example {
            let event: RunEvent =
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
            rewritten += &encoder.next_line(&event);
        } else {
            rewritten += line;
        }
    }
    rewritten
}

/// The sections about events: the name in the heading, the prose, and the lines of the examples.
fn sections(text: &str) -> Vec<(String, String, Vec<Value>)> {
    let sections = text.split("\n### `").skip(1).map(|section| {
        let (name, rest) = section.split_once("`\n").unwrap();
        let rest = rest.split("\n## ").next().unwrap();
        let (prose, example) = rest.split_once(OPEN).unwrap();
        let (lines, _) = example.split_once(CLOSE).unwrap();
        let lines = lines
            .trim()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap());
        (name.to_owned(), prose.to_owned(), lines.collect())
    });
    sections.collect()
}

#[test]
#[allow(clippy::disallowed_methods, reason = "only the developer asks for it")]
fn examples_are_lines_as_they_are_written() {
    let text = fs::read_to_string(document()).unwrap();
    let right = rewritten(&text);
    if env::var_os("SPEC").is_some_and(|word| word == "overwrite") {
        fs::write(document(), right).unwrap();
        return;
    }
    for (line, right) in text.lines().zip(right.lines()) {
        assert_eq!(line, right, "SPEC=overwrite cargo test -p plaincall log");
    }
    let examples = text
        .split(OPEN)
        .skip(1)
        .map(|rest| rest.split_once(CLOSE).unwrap().0.trim_start());
    let examples: String = examples.collect();
    let record = read_log(examples.as_bytes()).unwrap();
    assert_eq!(
        (record.events.len(), record.torn),
        (examples.lines().count(), None)
    );
}

#[test]
fn every_event_and_every_field_is_described() {
    let text = fs::read_to_string(document()).unwrap();
    // The error of an unknown event lists the known ones.
    let known = serde_json::from_str::<RunEvent>("{\"event\":\"?\"}")
        .unwrap_err()
        .to_string();
    let known: BTreeSet<&str> = known.split('`').skip(3).step_by(2).collect();
    assert!(known.len() > 10, "{known:?}");
    let sections = sections(&text);
    let described: BTreeSet<&str> = sections.iter().map(|(name, _, _)| &**name).collect();
    assert_eq!(described, known);
    for (name, prose, lines) in &sections {
        let examples: Vec<&Value> = lines
            .iter()
            .filter(|line| line["event"] == **name)
            .collect();
        assert!(!examples.is_empty(), "{name}");
        let fields = examples
            .iter()
            .flat_map(|line| line.as_object().unwrap().keys());
        for field in fields.filter(|field| !EVERYWHERE.contains(&&***field)) {
            assert!(prose.contains(&format!("`{field}`")), "{name}: `{field}`");
        }
    }
}
