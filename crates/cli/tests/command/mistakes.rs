//! Mistakes of users, and the messages for them: the table in `mistakes.txt`.
//!
//! Its cases have the form of `cases.rs`, each after a line with its title. Every message contains the problem, its place
//! and the fix.

use std::fs;
use std::path::Path;

use snapbox::{Data, assert_data_eq};

use crate::command::cases::replayed;

/// The separator of the cases.
const RULE: &str = "----------------------------------------\n";

/// Returns the output of a run without the parts that depend on its duration.
fn without_times(output: &str) -> String {
    let mut kept = String::new();
    let mut is_timeline = false;
    for line in output.split_inclusive('\n') {
        is_timeline = line == "Timeline\n" || (is_timeline && !line.starts_with("==="));
        if !is_timeline {
            kept.push_str(line);
        }
    }
    kept
}

#[test]
fn mistakes() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/command/mistakes.txt");
    let table = fs::read_to_string(&path).unwrap();
    let mut found = Vec::new();
    for case in table.split(RULE) {
        let (title, case) = case.split_once('\n').unwrap();
        let output = without_times(&replayed(case));
        assert!(
            title.starts_with("# ") && output.contains("=== status"),
            "{title}"
        );
        found.push(format!("{title}\n{output}"));
    }
    assert!(found.len() >= 40, "{}", found.len());
    assert_data_eq!(found.join(RULE), Data::read_from(&path, None).raw());
}

/// Each mistake is found, and its message contains advice or names the value.
#[test]
fn every_mistake_is_reported() {
    let table = include_str!("mistakes.txt");
    for case in table.split(RULE) {
        let title = case.lines().next().unwrap();
        let (_, output) = case.split_once("=== status ").unwrap();
        assert!(
            !output.starts_with('0') || output.contains("warning["),
            "{title}"
        );
        for word in ["Option<", "Some(", "Err(", "os error", "panicked", "unwrap"] {
            assert!(!output.contains(word), "{title}: {output}");
        }
    }
}
