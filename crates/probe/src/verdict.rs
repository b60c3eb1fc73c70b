//! The conclusion from the figures.

use std::cmp::Ordering;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::report::ArmReport;

/// The recommendation. Two arms differ only if their confidence intervals do not overlap.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case", deny_unknown_fields)]
#[non_exhaustive]
pub enum Verdict {
    /// Native calls are better than every syntax of Plaincall: keep them.
    KeepNative,
    /// Native calls and this arm do not differ.
    NoDifference {
        /// The best arm with a syntax of Plaincall.
        arm: String,
    },
    /// This arm with a syntax of Plaincall is better than native calls, or there are none.
    Use {
        /// The arm.
        arm: String,
        /// Another syntax that does not differ from it.
        same_as: Option<String>,
    },
    /// JSON in the prompt is better than native calls and every syntax of Plaincall.
    Json {
        /// The arm.
        arm: String,
    },
    /// The model solved no task with calls.
    Nothing,
}

impl Verdict {
    /// Returns the verdict about these figures.
    pub fn of(arms: &[ArmReport]) -> Self {
        let native = able(arms, Arm::is_native).next();
        let json = best(arms, |arm| !arm.is_native() && !arm.is_plaincall());
        let ours = best(arms, Arm::is_plaincall);
        let is_better = |one: &ArmReport, other: &ArmReport| {
            one.share() > other.share() && !one.interval.overlaps(&other.interval)
        };
        let is_json_better = |other: Option<&ArmReport>| match (json, other) {
            (Some(json), Some(other)) => is_better(json, other),
            (json, None) => json.is_some(),
            (None, Some(_)) => false,
        };
        if let Some(json) = json.filter(|_| is_json_better(native) && is_json_better(ours)) {
            let arm = json.arm.clone();
            return Self::Json { arm };
        }
        match (native, ours) {
            (None, None) => Self::Nothing,
            (Some(_), None) => Self::KeepNative,
            (Some(native), Some(ours)) if is_better(native, ours) => Self::KeepNative,
            (Some(native), Some(ours)) if !is_better(ours, native) => Self::NoDifference {
                arm: ours.arm.clone(),
            },
            (_, Some(ours)) => {
                let others = able(arms, Arm::is_plaincall);
                let mut others = others.filter(|other| other.arm != ours.arm);
                let same = others.find(|other| !is_better(ours, other));
                Self::Use {
                    arm: ours.arm.clone(),
                    same_as: same.map(|other| other.arm.clone()),
                }
            }
        }
    }
}

/// Returns the arms that solved a task with calls, and did not stop early.
fn able(arms: &[ArmReport], is: impl Fn(&Arm) -> bool) -> impl Iterator<Item = &ArmReport> {
    arms.iter().filter(move |report| {
        report.correct_with_calls > 0
            && report.stopped.is_none()
            && Arm::named(&report.arm).is_some_and(|arm| is(&arm))
    })
}

/// Returns the best of these arms: the largest share of correct attempts, then the smallest share of rejected
/// calls, then the fewest tokens.
pub(crate) fn best(arms: &[ArmReport], is: impl Fn(&Arm) -> bool) -> Option<&ArmReport> {
    let rejected = |arm: &ArmReport| {
        f64::from(arm.calls.saturating_sub(arm.well_formed)) / f64::from(arm.calls.max(1))
    };
    let tokens =
        |arm: &ArmReport| (arm.input_tokens + arm.output_tokens) / u64::from(arm.attempts.max(1));
    let order = |one: &&ArmReport, other: &&ArmReport| -> Ordering {
        let by_share = other.share().total_cmp(&one.share());
        by_share
            .then(rejected(one).total_cmp(&rejected(other)))
            .then(tokens(one).cmp(&tokens(other)))
    };
    able(arms, is).min_by(order)
}
