//! A result to share: figures with versions and settings, without secrets and texts of the model.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::report::{ArmReport, Report, wilson};
use crate::task::task_version;
use crate::verdict::{self, Verdict};

/// The version of the format.
const FORMAT: u32 = 1;
/// The repetitions that a default of a model needs.
const REPETITIONS: u32 = 3;

/// The settings of a comparison that change what a model writes. No address, no key and no header is among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Settings {
    /// The API of the server: `openai`, `anthropic`, `replay` or `reference`.
    pub api: String,
    /// The sampling temperature. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// The most tokens of a reply. Default: the server's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_tokens: Option<u32>,
    /// The seed of the first repetition.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// Whether ` /]` ended an emoji call without a body.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub self_closing: bool,
    /// The engine that constrained the replies of arms with a grammar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub engine: Option<String>,
    /// The time limit of an attempt, in seconds.
    pub timeout_seconds: u64,
    /// The names of additional request fields. Their values are not stored, because they may be secret.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub request_fields: Vec<String>,
}

/// A result to share.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct SharedResult {
    /// The version of the format: 1.
    pub format: u32,
    /// The version of Plaincall.
    pub plaincall: String,
    /// The version of the tasks ([`task_version`]).
    pub tasks: String,
    /// The model, as the server names it.
    pub model: String,
    /// A note of the person who measured it, such as the server's version and the quantization.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// The settings.
    pub settings: Settings,
    /// The number of repetitions.
    pub repetitions: u32,
    /// Whether each arm tried all tasks in all repetitions, or stopped early.
    pub is_complete: bool,
    /// The figures of each arm.
    pub arms: Vec<ArmReport>,
    /// The verdict.
    pub verdict: Verdict,
}

impl SharedResult {
    /// Creates a result from a report.
    pub fn new(
        report: &Report,
        model: &str,
        note: Option<String>,
        settings: Settings,
        repetitions: u32,
        is_complete: bool,
    ) -> Self {
        let mut arms = report.arms.clone();
        for arm in &mut arms {
            // The message of a server may contain its address.
            let reason = arm.unavailable.as_mut();
            if let Some(reason) = reason {
                "refused by the server".clone_into(reason);
            }
        }
        Self {
            format: FORMAT,
            plaincall: env!("CARGO_PKG_VERSION").to_owned(),
            tasks: task_version(),
            model: model.to_owned(),
            note,
            settings,
            repetitions,
            is_complete: is_complete
                && arms.iter().all(|arm| {
                    let is_tried = !arm.tasks.is_empty();
                    is_tried || arm.unavailable.is_some() || arm.stopped.is_some()
                }),
            arms,
            verdict: report.verdict.clone(),
        }
    }

    /// Returns the result as JSON, with a line end.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default() + "\n"
    }

    /// Reads a result.
    ///
    /// # Errors
    /// Returns an error if the text is not the JSON of a result, or its figures contradict each other.
    pub fn read(json: &str) -> Result<Self, String> {
        let result: Self = serde_json::from_str(json).map_err(|error| error.to_string())?;
        if result.format != FORMAT {
            return Err(format!("the format is {}, not {FORMAT}", result.format));
        }
        let mut names = BTreeSet::new();
        for arm in &result.arms {
            let sum = |of: &dyn Fn(&crate::report::TaskReport) -> u32| -> u32 {
                arm.tasks.iter().map(of).sum()
            };
            let is_known = Arm::named(&arm.arm).is_some() && names.insert(&arm.arm);
            let is_consistent = arm.correct <= arm.attempts
                && arm.well_formed <= arm.calls
                && sum(&|task| task.attempts) == arm.attempts
                && sum(&|task| task.correct) == arm.correct
                && arm.interval == wilson(arm.correct, arm.attempts);
            if !is_known || !is_consistent {
                return Err(format!(
                    "the figures of the arm `{}` are inconsistent",
                    arm.arm
                ));
            }
        }
        if result.verdict != Verdict::of(&result.arms) {
            return Err("the verdict does not follow from the figures".to_owned());
        }
        Ok(result)
    }

    /// Returns the arm that should be the default for the model: the best syntax of Plaincall without a grammar, because not every
    /// server of the model accepts one. The result must be complete and have at least three repetitions, no other default
    /// syntax may be as good, and ` /]` was not accepted.
    pub fn default_arm(&self) -> Option<(&ArmReport, Arm)> {
        if !self.is_complete || self.repetitions < REPETITIONS || self.settings.self_closing {
            return None;
        }
        let best = verdict::best(&self.arms, |arm| arm.is_plaincall() && !arm.has_grammar())?;
        let mut others = self.arms.iter().filter(|other| {
            let arm = Arm::named(&other.arm);
            other.arm != best.arm && arm.is_some_and(|arm| arm.is_plaincall() && arm.is_default)
        });
        if others.any(|other| other.interval.overlaps(&best.interval)) {
            return None;
        }
        Some((best, Arm::named(&best.arm)?))
    }
}
