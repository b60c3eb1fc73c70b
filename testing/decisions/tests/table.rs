//! The test.
//!
//! Replies are numbered. `DECISIONS_CASES=2000 cargo test -p plaincall-decisions` reads more of them, and
//! `DECISIONS_CASE=7` one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plaincall_testkit::cases::{Playing, all_cases};

use crate::decision::Seen;
use crate::differences::{ALLOWED, Comparison, Difference, Disagreement, KNOWN};
use crate::entry_points::{ENTRY_POINTS, EntryPoint, document};
use crate::file::{SHARE, check, line};
use crate::texts::{Reply, reply};
use crate::tools::Tools;

/// The least numbers of calls that a run decides so about, and of those that the gateway sends in native mode.
const LEAST: &[(&str, u32)] = &[
    ("runs", 130),
    ("held", 5),
    ("arguments", 20),
    ("unknown-tool", 20),
    ("truncated", 5),
    ("end-of-file", 1),
    ("no-end-marker", 3),
    ("ended-by-next-call", 10),
    ("after-unclosed", 10),
    ("after-broken-start", 10),
    ("marker-inside", 10),
    ("long-last-value", 2),
    ("other-end", 2),
    ("ends-in-quotation", 10),
    ("in-reasoning", 5),
    ("slash-in-header", 1),
    ("maybe-reasoning", 5),
    ("duplicate-id", 5),
    (SENT, 50),
];
const SENT: &str = "sent in native mode";

fn describe(number: u64, reply: &Reply, run: &Seen, seen: &Seen) -> String {
    format!(
        "DECISIONS_CASE={number}, finish reason {:?}\n{}\n-- run: {run:#?}\n-- found: {seen:#?}\n",
        reply.finish, reply.text
    )
}

/// Checks that there are enough calls of each kind.
fn check_counts(counts: &BTreeMap<&str, u32>) {
    let mut problems = String::new();
    for (name, least) in LEAST {
        let count = counts.get(name).copied().unwrap_or_default();
        if count < *least {
            writeln!(
                problems,
                "{count} calls: {name}; at least {least} are needed"
            )
            .unwrap();
        }
    }
    assert!(problems.is_empty(), "{problems}");
}

/// Checks that each known disagreement occurs.
fn check_rows(found: &BTreeMap<Disagreement, (u32, String)>) {
    let mut problems = String::new();
    for known in KNOWN {
        let is_here = |name: &&&str| cfg!(feature = "tables") || **name != "table";
        for beginning in known.entry_points.iter().filter(is_here) {
            if !found.keys().any(|one| known.is(beginning, *one)) {
                let (expected, reason) = (known.expected, known.reason);
                writeln!(
                    problems,
                    "`{beginning}` agrees by now about `{expected}`: {reason}"
                )
                .unwrap();
            }
        }
    }
    assert!(problems.is_empty(), "remove these rows:\n{problems}");
}

#[test]
fn every_entry_point_decides_alike() {
    let with_effects = Tools::new(true);
    let without = Tools::new(false);
    let tools = |entry_point: &EntryPoint| {
        if entry_point.differences.contains(&Difference::NoEffects) {
            &without
        } else {
            &with_effects
        }
    };
    let numbers = all_cases("DECISIONS", SHARE);
    let is_share = numbers.start == 0 && numbers.end >= SHARE;
    let mut found: BTreeMap<Disagreement, (u32, String)> = BTreeMap::new();
    let mut needed = Vec::new();
    let mut lines = Vec::new();
    let mut counts: BTreeMap<&str, u32> = BTreeMap::new();
    for number in numbers {
        let _playing = Playing::new("DECISIONS", number);
        let reply = reply(number);
        let expected = [&with_effects, &without].map(|tools| {
            let mut run = (ENTRY_POINTS[0].decide)(tools, &reply);
            // A run does not report the arguments of a rejected call.
            let document = document(tools, &reply);
            for (decision, read) in run.decisions.iter_mut().zip(document.decisions) {
                decision.arguments = decision.arguments.take().or(read.arguments);
            }
            run
        });
        if number < SHARE {
            lines.push(line(number, &reply, &expected[0]));
        }
        if expected[0] != expected[1] {
            needed.push(Difference::NoEffects);
        }
        for decision in &expected[0].decisions {
            *counts.entry(decision.code()).or_default() += 1;
        }
        let mut native: Option<Seen> = None;
        for entry_point in &ENTRY_POINTS[1..] {
            if reply.is_file && entry_point.differences.contains(&Difference::NoFiles) {
                needed.push(Difference::NoFiles);
                continue;
            }
            let tools = tools(entry_point);
            let run = &expected[usize::from(std::ptr::eq(tools, &raw const without))];
            let seen = (entry_point.decide)(tools, &reply);
            if entry_point
                .differences
                .contains(&Difference::NativeCandidates)
            {
                let first = native.get_or_insert_with(|| seen.clone());
                let sent = u32::try_from(seen.decisions.len()).unwrap();
                *counts.entry(SENT).or_default() += sent;
                assert_eq!(*first, seen, "{}: {reply:?}", entry_point.name);
            }
            let comparison = Comparison::new(entry_point, &reply, run, &seen);
            needed.extend(comparison.needed);
            for disagreement in comparison.disagreements {
                let example = || (0, describe(number, &reply, run, &seen));
                found.entry(disagreement).or_insert_with(example).0 += 1;
            }
        }
    }
    let mut problems = String::new();
    for (disagreement, (count, example)) in &found {
        if !KNOWN.iter().any(|known| known.matches(*disagreement)) {
            writeln!(problems, "== {count} times {disagreement:?}, in {example}").unwrap();
        }
    }
    assert!(problems.is_empty(), "{problems}");
    if !is_share {
        return;
    }
    check(&lines, found.keys().copied());
    check_counts(&counts);
    check_rows(&found);
    for (difference, reason) in ALLOWED {
        let is_needed = needed.contains(difference);
        assert!(is_needed, "no entry point needs {difference:?}: {reason}");
    }
}
