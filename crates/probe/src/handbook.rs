//! System texts: a short one, and an agent-sized one with a handbook, the files of a project and its history.

use std::fmt::Write as _;

pub(crate) const TEXT: &str = include_str!("../tasks/handbook.md");

const SHORT: &str =
    "You work with tools. Do exactly what is asked, then answer in one or two sentences.\n";
const PARTS: [&str; 8] = [
    "berths", "billing", "cranes", "gates", "pilots", "radio", "tides", "weather",
];
const FILES: [&str; 13] = [
    "README.md",
    "src/lib.rs",
    "src/model.rs",
    "src/store.rs",
    "src/rules/arrival.rs",
    "src/rules/departure.rs",
    "src/report/daily.py",
    "src/report/monthly.py",
    "tests/arrival_of_two_ships.rs",
    "tests/departure_at_low_tide.rs",
    "tests/data/recorded-day.json",
    "web/overview.ts",
    "web/overview.css",
];
const AUTHORS: [&str; 5] = ["Ada Berg", "Ole Hansen", "Eva Moe", "Ida Lund", "Per Dahl"];
const CHANGES: [&str; 9] = [
    "read times with seconds",
    "keep the order of equal entries",
    "report a missing value with its place",
    "test the last day of a month",
    "do not round twice",
    "document the units",
    "remove what nothing uses",
    "accept an empty list",
    "faster search by name",
];

/// Returns the system text of a task.
pub(crate) fn system(is_agent_sized: bool) -> String {
    if !is_agent_sized {
        return SHORT.to_owned();
    }
    let mut text = TEXT.to_owned();
    text.push_str("## The files of the project at the beginning of the conversation\n\n");
    for part in PARTS {
        for file in FILES {
            let _ = writeln!(text, "components/{part}/{file}");
        }
    }
    text.push_str("\n## The latest changes\n\n");
    let mut hash: u32 = 0x4f1c_2aa1;
    for number in 0..288 {
        hash = hash.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let pick = |from: &[&'static str], by: usize| {
            from.get((number * by + number / 7) % from.len())
                .copied()
                .unwrap_or_default()
        };
        let (author, part, change) = (pick(&AUTHORS, 3), pick(&PARTS, 5), pick(&CHANGES, 2));
        let _ = writeln!(text, "{hash:08x} {author}: {part}: {change}");
    }
    text.push('\n');
    text + SHORT
}
