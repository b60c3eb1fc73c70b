//! Differences between entry points: those that the rules allow, and those that must disappear.

use crate::decision::{Decision, Outcome, Seen, rule_of};
use crate::entry_points::EntryPoint;
use crate::texts::Reply;

/// A difference that the rules allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Difference {
    NoFiles,
    NoEffects,
    NoGate,
    UpToFirstInvalid,
    AlreadySent,
    NativeCandidates,
    OtherSentence,
    NoReasons,
}

/// The differences that the rules allow, with their reasons. Each is needed by some reply.
pub(crate) const ALLOWED: &[(Difference, &str)] = &[
    (
        Difference::NoFiles,
        "the gateway reads replies of model servers, never files",
    ),
    (
        Difference::NoEffects,
        "the gateway knows no effects, so each tool counts as one that writes",
    ),
    (
        Difference::NoGate,
        "a held call is invalid where there is no gate",
    ),
    (
        Difference::UpToFirstInvalid,
        "the gateway sends the calls before the first invalid one, about which the model is asked or informed",
    ),
    (
        Difference::AlreadySent,
        "a reasoning end marker does not undo what has started or been sent while the reply arrived",
    ),
    (
        Difference::NativeCandidates,
        "in native mode, calls in other formats count too, and a reply must end with its calls",
    ),
    (
        Difference::OtherSentence,
        "the reasons of `openai_calls` name each invalid argument, and for a held call the repair",
    ),
    (
        Difference::NoReasons,
        "`check` reports diagnostics with a place, and no sentence for the model",
    ),
];

/// A disagreement that a rule does not allow: it must disappear.
pub(crate) struct Known {
    /// The beginnings of the names of the entry points. Each has the disagreement.
    pub(crate) entry_points: &'static [&'static str],
    /// The decision of `run` about a call.
    pub(crate) expected: &'static str,
    /// The decision of the entry point.
    pub(crate) found: &'static str,
    pub(crate) reason: &'static str,
}

/// Any decision.
const ANY: &str = "*";
/// Any reason for a rejection.
const ANY_REASON: &str = "any reason";

/// The known disagreements. One that no longer occurs fails the test. Except for the escape, all are about the reason that is
/// reported for a call that each entry point rejects.
pub(crate) const KNOWN: &[Known] = &[
    Known {
        entry_points: &["reader", "document", "extract", "table", "parse"],
        expected: "duplicate-id",
        found: ANY_REASON,
        reason: "runs reject the second call with an id before they look at its end, and in another sentence",
    },
    Known {
        entry_points: &["serve, text", "parse"],
        expected: "arguments",
        found: "held",
        reason: "without a gate, the reason to hold a call is reported instead of invalid arguments",
    },
    Known {
        entry_points: &["parse"],
        expected: "unknown-tool",
        found: "held",
        reason: "without a gate, the reason to hold a call is reported instead of an unknown tool",
    },
    Known {
        entry_points: &["serve, native"],
        expected: WITH_ESCAPE,
        found: ANY,
        reason: "`serve` in native mode does not read the escape, which the others read",
    },
];

/// A call of a reply with an escaped marker.
const WITH_ESCAPE: &str = "a call of a reply with an escape";

/// Returns whether a decision of a row is this one.
fn is_decision(row: &str, decision: &str) -> bool {
    match row {
        ANY => true,
        ANY_REASON => !NO_REASONS.contains(&decision),
        _ => row == decision,
    }
}

/// The decisions and disagreements that are not a reason for a rejection.
const NO_REASONS: [&str; 6] = [
    "runs",
    "held",
    "rejected",
    "no call",
    "another call",
    "other arguments",
];

/// A disagreement about one call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Disagreement {
    pub(crate) entry_point: &'static str,
    pub(crate) expected: &'static str,
    pub(crate) found: &'static str,
}

impl Known {
    /// Returns whether this is the disagreement of the entry points with this beginning.
    pub(crate) fn is(&self, beginning: &str, disagreement: Disagreement) -> bool {
        disagreement.entry_point.starts_with(beginning)
            && is_decision(self.expected, disagreement.expected)
            && is_decision(self.found, disagreement.found)
    }

    pub(crate) fn matches(&self, disagreement: Disagreement) -> bool {
        let mut entry_points = self.entry_points.iter();
        entry_points.any(|beginning| self.is(beginning, disagreement))
    }
}

/// Compares what an entry point does with what `run` does. Notes which differences were needed.
pub(crate) struct Comparison<'c> {
    entry_point: &'c EntryPoint,
    pub(crate) disagreements: Vec<Disagreement>,
    pub(crate) needed: Vec<Difference>,
}

impl<'c> Comparison<'c> {
    pub(crate) fn new(entry_point: &'c EntryPoint, reply: &Reply, run: &Seen, seen: &Seen) -> Self {
        let mut comparison = Self {
            entry_point,
            disagreements: Vec::new(),
            needed: Vec::new(),
        };
        let expected: Vec<Decision> = run
            .decisions
            .iter()
            .map(|one| comparison.adapted(one))
            .collect();
        if comparison.has(Difference::NativeCandidates) {
            comparison.native(reply, &expected, &seen.decisions);
            if reply.has_escape() {
                for disagreement in &mut comparison.disagreements {
                    disagreement.expected = WITH_ESCAPE;
                }
            }
        } else {
            comparison.in_order(&expected, seen);
        }
        comparison
    }

    fn has(&self, difference: Difference) -> bool {
        self.entry_point.differences.contains(&difference)
    }

    /// Returns whether the entry point has a difference that matters here.
    fn needs(&mut self, difference: Difference) -> bool {
        let has = self.has(difference);
        if has {
            self.needed.push(difference);
        }
        has
    }

    /// Returns what the rules ask of the entry point, for what `run` does.
    fn adapted(&mut self, decision: &Decision) -> Decision {
        let mut decision = decision.clone();
        if let Outcome::Held(marker) = &decision.outcome {
            let marker = marker.clone();
            if self.needs(Difference::NoGate) {
                decision = Decision::rejected(&decision.name, Some(marker));
            }
        }
        if matches!(decision.outcome, Outcome::Rejected(_)) && self.needs(Difference::NoReasons) {
            decision.outcome = Outcome::Rejected(None);
        }
        if self.has(Difference::NoReasons) {
            decision.arguments = None;
        }
        decision
    }

    fn differ(&mut self, expected: &'static str, found: &'static str) {
        self.disagreements.push(Disagreement {
            entry_point: self.entry_point.name,
            expected,
            found,
        });
    }

    fn in_order(&mut self, expected: &[Decision], seen: &Seen) {
        let found = &seen.decisions;
        for at in 0..expected.len().max(found.len()) {
            match (expected.get(at), found.get(at)) {
                (Some(expected), Some(found)) => self.one(expected, found),
                (Some(expected), None) => {
                    if !expected.is_run() && self.needs(Difference::UpToFirstInvalid) {
                        self.repair(expected, seen, at);
                        return;
                    }
                    self.differ(expected.code(), "no call");
                }
                (None, Some(found)) => self.differ("no call", found.code()),
                (None, None) => {}
            }
        }
    }

    /// The model is asked again about the first invalid call, if no call was sent before it.
    fn repair(&mut self, expected: &Decision, seen: &Seen, at: usize) {
        if let Some(first) = seen.problems.first().filter(|_| at == 0) {
            if expected.code() == "maybe-reasoning" && self.needs(Difference::AlreadySent) {
                return;
            }
            let mut codes = seen.problems.iter().map(|problem| rule_of(problem));
            if !codes.any(|code| code == expected.code()) {
                self.differ(expected.code(), rule_of(first));
            }
        }
    }

    fn one(&mut self, expected: &Decision, found: &Decision) {
        let is_rejected = matches!(expected.outcome, Outcome::Rejected(_));
        let is_equal = |found: &Decision| {
            let same = (&expected.name, &expected.outcome) == (&found.name, &found.outcome);
            same && (is_rejected || expected.arguments == found.arguments)
        };
        if is_equal(found) {
            return;
        }
        let codes = (expected.code(), found.code());
        if codes.0 == "maybe-reasoning"
            && matches!(found.outcome, Outcome::Runs | Outcome::Held(_))
            && self.needs(Difference::AlreadySent)
        {
            return;
        }
        let found = if expected.name != found.name {
            "another call"
        } else if codes.0 != codes.1 {
            codes.1
        } else if expected.outcome != found.outcome {
            if self.needs(Difference::OtherSentence) {
                return;
            }
            "another sentence"
        } else {
            "other arguments"
        };
        self.differ(codes.0, found);
    }

    /// In native mode, a call in the syntaxes of Plaincall is one candidate among others.
    fn native(&mut self, reply: &Reply, expected: &[Decision], found: &[Decision]) {
        if let Some((name, tools)) = reply.native {
            let found: Vec<&str> = found.iter().map(|call| &*call.name).collect();
            self.needs(Difference::NativeCandidates);
            if found != tools {
                let found = if found.len() < tools.len() {
                    "too few calls"
                } else {
                    "too many calls"
                };
                self.differ(name, found);
            }
            return;
        }
        let mut rest: Vec<&Decision> = expected.iter().collect();
        for sent in found {
            let same =
                |one: &&Decision| (&one.name, &one.arguments) == (&sent.name, &sent.arguments);
            let runs = rest.iter().position(|one| one.is_run() && same(one));
            if let Some(at) = runs.or_else(|| rest.iter().rposition(same)) {
                let expected = rest.remove(at);
                self.one(expected, sent);
            } else if reply.has_other_format {
                self.needs(Difference::NativeCandidates);
            } else {
                let is_run = |one: &&Decision| one.is_run() && one.name == sent.name;
                match rest.iter().position(is_run) {
                    Some(at) => {
                        rest.remove(at);
                        self.differ("runs", "other arguments");
                    }
                    None => self.differ("no call", "runs"),
                }
            }
        }
        if rest.iter().any(|one| one.is_run()) {
            let must_send = reply.is_only_calls && expected.iter().all(Decision::is_run);
            if must_send {
                self.differ("runs", "no call");
            } else {
                self.needs(Difference::NativeCandidates);
            }
        }
    }
}
