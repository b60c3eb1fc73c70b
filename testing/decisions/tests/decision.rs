//! Decisions about calls.

use plaincall_reply::{CallError, SuspectMarker};
use serde_json::Value;

/// The decision of an entry point about a call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Decision {
    /// The name of the tool, as written.
    pub(crate) name: String,
    /// The arguments of a call that may run.
    pub(crate) arguments: Option<Value>,
    pub(crate) outcome: Outcome,
}

/// Whether a call runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It runs, or it is sent or counted.
    Runs,
    /// The gate decides, because of this text.
    Held(String),
    /// It is rejected, for this reason. Without one, the entry point reports none.
    Rejected(Option<String>),
}

/// The decisions of an entry point about a reply.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Seen {
    /// The decisions about the calls, in their order.
    pub(crate) decisions: Vec<Decision>,
    /// The problems of the first rejected call, if the model was asked again about it.
    pub(crate) problems: Vec<String>,
}

impl Decision {
    pub(crate) fn runs(name: &str, arguments: Option<Value>) -> Self {
        Self {
            name: name.to_owned(),
            arguments,
            outcome: Outcome::Runs,
        }
    }

    pub(crate) fn held(name: &str, arguments: Option<Value>, marker: &SuspectMarker) -> Self {
        Self {
            name: name.to_owned(),
            arguments,
            outcome: Outcome::Held(marker.to_string()),
        }
    }

    pub(crate) fn rejected(name: &str, reason: Option<String>) -> Self {
        Self {
            name: name.to_owned(),
            arguments: None,
            outcome: Outcome::Rejected(reason),
        }
    }

    /// Converts the result of binding a call.
    pub(crate) fn of(
        name: &str,
        arguments: Option<Value>,
        decided: Result<Option<&SuspectMarker>, &CallError>,
    ) -> Self {
        match decided {
            Ok(None) => Self::runs(name, arguments),
            Ok(Some(marker)) => Self::held(name, arguments, marker),
            Err(error) => Self::rejected(name, Some(error.to_string())),
        }
    }

    /// Returns whether the call runs.
    pub(crate) fn is_run(&self) -> bool {
        self.outcome == Outcome::Runs
    }

    /// Returns the rule that decided, as one word.
    pub(crate) fn code(&self) -> &'static str {
        match &self.outcome {
            Outcome::Runs => "runs",
            Outcome::Held(_) => "held",
            Outcome::Rejected(None) => "rejected",
            Outcome::Rejected(Some(reason)) => rule_of(reason),
        }
    }
}

impl From<Vec<Decision>> for Seen {
    fn from(decisions: Vec<Decision>) -> Self {
        Self {
            decisions,
            problems: Vec::new(),
        }
    }
}

/// A part of each reason, and its rule. A rule may have several sentences. The first part that a reason contains counts.
const RULES: &[(&str, &str)] = &[
    ("does not begin its line", "ends-in-quotation"),
    ("looks like the start of a call", "after-broken-start"),
    ("opens reasoning, which contains no calls", "in-reasoning"),
    ("which does not end a call here", "slash-in-header"),
    ("text that looks like a marker", "marker-inside"),
    ("its last value has several lines", "long-last-value"),
    ("but with text of another format", "other-end"),
    ("looks like the end marker", "held"),
    ("the start of another call", "held"),
    ("begins a call, so the end marker", "held"),
    ("was truncated inside this call", "truncated"),
    ("this call may be truncated", "truncated"),
    ("the text ends in this call", "end-of-file"),
    ("this call does not end with", "no-end-marker"),
    ("the next call begins before", "ended-by-next-call"),
    ("so this call may be part of its text", "after-unclosed"),
    ("this call may be part of the reasoning", "maybe-reasoning"),
    ("also has the id", "duplicate-id"),
    ("is already taken by an earlier call", "duplicate-id"),
    ("no tool `", "unknown-tool"),
    ("unknown tool", "unknown-tool"),
    ("invalid arguments", "arguments"),
];

/// Returns the rule of a reason.
pub(crate) fn rule_of(reason: &str) -> &'static str {
    let rule = RULES.iter().find(|(part, _)| reason.contains(part));
    // All other reasons name an argument, and there are many.
    rule.map_or("arguments", |(_, rule)| rule)
}
