//! What people get wrong, and what they are told: the table in `mistakes.txt`.
//!
//! Its cases have the form of `cases.rs`, each behind a line with its title. Every message says what was found, where, and
//! what to do.

use std::fs;
use std::path::Path;

use snapbox::{Data, assert_data_eq};

use crate::command::cases::replayed;

/// What separates the cases.
const RULE: &str = "----------------------------------------\n";

/// What a run shows, without what depends on the time it took.
fn without_times(told: &str) -> String {
    let mut kept = String::new();
    let mut is_timeline = false;
    for line in told.split_inclusive('\n') {
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
        let told = without_times(&replayed(case));
        assert!(
            title.starts_with("# ") && told.contains("=== status"),
            "{title}"
        );
        found.push(format!("{title}\n{told}"));
    }
    assert!(found.len() >= 40, "{}", found.len());
    assert_data_eq!(found.join(RULE), Data::read_from(&path, None).raw());
}

/// Each mistake is found, and the message is made for people: it ends in advice or names what was found.
#[test]
fn every_mistake_is_reported() {
    let table = include_str!("mistakes.txt");
    for case in table.split(RULE) {
        let title = case.lines().next().unwrap();
        let (_, told) = case.split_once("=== status ").unwrap();
        assert!(
            !told.starts_with('0') || told.contains("warning["),
            "{title}"
        );
        for word in ["Option<", "Some(", "Err(", "os error", "panicked", "unwrap"] {
            assert!(!told.contains(word), "{title}: {told}");
        }
    }
}
