//! `replies.json`: replies and decisions for the tests of the packages in other languages.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::{Value, json};

use crate::decision::{Decision, Outcome, Seen};
use crate::differences::{ALLOWED, Difference, Disagreement, KNOWN};
use crate::replies::model::tools;
use crate::texts::Reply;
use crate::tools::EFFECTS;

/// The number of replies that the ordinary test reads, which the file contains.
pub(crate) const SHARE: u64 = 250;

/// The entry points of the packages: `parse` and `reader` of a toolbox, and `execute`.
const OF_PACKAGES: [&str; 3] = ["document", "reader", "planned"];

/// Returns the line of a reply, with what a run does with its calls.
pub(crate) fn line(number: u64, reply: &Reply, run: &Seen) -> Value {
    json!({
        "number": number,
        "syntax": reply.syntax.name(),
        "text": reply.text,
        "stop": reply.stop().name(),
        "calls": run.decisions.iter().map(call).collect::<Vec<_>>(),
    })
}

fn call(decision: &Decision) -> Value {
    let (outcome, reason) = match &decision.outcome {
        Outcome::Runs => ("runs", None),
        Outcome::Held(marker) => ("held", Some(marker)),
        Outcome::Rejected(reason) => ("rejected", reason.as_ref()),
    };
    let is_rejected = outcome == "rejected";
    json!({
        "name": decision.name,
        "decision": outcome,
        "rule": decision.code(),
        "reason": reason,
        "arguments": decision.arguments.as_ref().filter(|_| !is_rejected),
    })
}

/// Returns the rules about which the packages differ from a run: the known disagreements, and what the rules allow.
fn differences(found: impl Iterator<Item = Disagreement>) -> Vec<Value> {
    let mut differences: Vec<Value> = Vec::new();
    for one in found.filter(|one| OF_PACKAGES.contains(&one.entry_point)) {
        let known = KNOWN.iter().find(|known| known.matches(one)).unwrap();
        let row = json!({"by": one.entry_point, "rule": one.expected, "reason": known.reason});
        let is_new = |row: &Value| {
            let mut kept = differences.iter();
            kept.all(|kept| (&kept["by"], &kept["rule"]) != (&row["by"], &row["rule"]))
        };
        if is_new(&row) {
            differences.push(row);
        }
    }
    let sent = ALLOWED.iter().find(|one| one.0 == Difference::AlreadySent);
    let (_, reason) = sent.unwrap();
    differences.push(json!({"by": "reader", "rule": "maybe-reasoning", "reason": reason}));
    differences
}

/// Checks the file, or writes it if the environment asks for it.
#[allow(
    clippy::disallowed_methods,
    reason = "the environment asks for a new file"
)]
pub(crate) fn check(lines: &[Value], found: impl Iterator<Item = Disagreement>) {
    let effects = EFFECTS.map(|(name, effect)| (name.to_owned(), json!(effect.name())));
    let effects = Value::Object(effects.into_iter().collect());
    let mut text = format!("{{\n\"tools\": {},\n\"effects\": {effects},\n", tools());
    for (name, list) in [
        ("differences", differences(found).as_slice()),
        ("replies", lines),
    ] {
        writeln!(text, "\"{name}\": [").unwrap();
        for (at, line) in list.iter().enumerate() {
            let comma = if at + 1 == list.len() { "" } else { "," };
            writeln!(text, "{line}{comma}").unwrap();
        }
        text += if name == "replies" { "]\n}\n" } else { "],\n" };
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("replies.json");
    if std::env::var("DECISIONS").as_deref() == Ok("overwrite") {
        std::fs::write(&path, &text).unwrap();
        return;
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    let differing = kept
        .lines()
        .zip(text.lines())
        .find(|(kept, now)| kept != now);
    assert!(
        kept == text,
        "the decisions have changed: read the diff after `DECISIONS=overwrite cargo test -p plaincall-decisions`\n{differing:#?}"
    );
}
