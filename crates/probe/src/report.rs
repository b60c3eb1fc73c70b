//! The figures of a comparison.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::arm::Arm;
use crate::attempt::Attempt;
use crate::task::Task;
use crate::verdict::Verdict;

/// The report of a comparison.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The figures of each arm.
    pub arms: Vec<ArmReport>,
    /// The conclusion from them.
    pub verdict: Verdict,
    /// All attempts: by task, then by arm.
    pub attempts: Vec<Attempt>,
}

/// The figures of an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct ArmReport {
    /// Its name.
    pub arm: String,
    /// Why it could not be tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The level after which it stopped, because it was certainly worse than the best arm.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<u8>,
    /// The number of attempts, without those that the server failed.
    pub attempts: u32,
    /// The number of correct attempts.
    pub correct: u32,
    /// The 95 % confidence interval of the share of correct attempts.
    pub interval: Interval,
    /// The number of correct attempts with calls. Some tasks need none.
    pub correct_with_calls: u32,
    /// The number of calls.
    pub calls: u32,
    /// The number of calls that could be parsed and had valid arguments.
    pub well_formed: u32,
    /// The number of calls that a tool executed without an error.
    pub succeeded: u32,
    /// The number of rejected calls in correct attempts.
    pub repaired: u32,
    /// The number of calls rejected only because they have no end marker.
    pub unclosed: u32,
    /// The tokens read, in all attempts.
    pub input_tokens: u64,
    /// The tokens written.
    pub output_tokens: u64,
    /// Whether some tokens are estimated.
    pub is_estimated: bool,
    /// The time of all attempts.
    pub milliseconds: u64,
    /// The number of attempts that the server failed.
    pub server_failures: u32,
    /// The figures of each task.
    pub tasks: Vec<TaskReport>,
}

/// The figures of a task with an arm.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name.
    pub task: String,
    /// The number of attempts, without those that the server failed.
    pub attempts: u32,
    /// The number of correct attempts.
    pub correct: u32,
    /// The number of calls.
    pub calls: u32,
    /// The number of well-formed calls.
    pub well_formed: u32,
    /// The tokens read.
    pub input_tokens: u64,
    /// The tokens written.
    pub output_tokens: u64,
    /// The time of all attempts.
    pub milliseconds: u64,
}

/// A confidence interval of a share.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct Interval {
    /// Its lower end.
    pub low: f64,
    /// Its upper end.
    pub high: f64,
}

impl Interval {
    /// Returns whether two intervals have a value in common.
    pub fn overlaps(&self, other: &Self) -> bool {
        self.low <= other.high && other.low <= self.high
    }
}

/// Returns Wilson's 95 % confidence interval of a share, rounded to four digits. Without attempts it is everything.
pub fn wilson(correct: u32, attempts: u32) -> Interval {
    if attempts == 0 {
        return Interval {
            low: 0.0,
            high: 1.0,
        };
    }
    let z = 1.959_964;
    let n = f64::from(attempts);
    let share = f64::from(correct) / n;
    let middle = share + z * z / (2.0 * n);
    let spread = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    let scale = 1.0 + z * z / n;
    let rounded = |value: f64| (value.clamp(0.0, 1.0) * 10_000.0).round() / 10_000.0;
    Interval {
        low: rounded((middle - spread) / scale),
        high: rounded((middle + spread) / scale),
    }
}

impl Report {
    pub(crate) fn new(
        arms: &[Arm],
        tasks: &[Task],
        attempts: Vec<Attempt>,
        unavailable: &BTreeMap<&str, String>,
        stopped: &BTreeMap<&str, u8>,
    ) -> Self {
        let arms = arms.iter().map(|arm| ArmReport {
            unavailable: unavailable.get(arm.name).cloned(),
            stopped: stopped.get(arm.name).copied(),
            ..ArmReport::new(arm, tasks, &attempts)
        });
        let arms: Vec<ArmReport> = arms.collect();
        Self {
            verdict: Verdict::of(&arms),
            arms,
            attempts,
        }
    }

    /// Returns the figures of an arm.
    pub fn arm(&self, name: &str) -> Option<&ArmReport> {
        self.arms.iter().find(|arm| arm.arm == name)
    }
}

impl ArmReport {
    /// Returns the share of correct attempts.
    pub fn share(&self) -> f64 {
        f64::from(self.correct) / f64::from(self.attempts.max(1))
    }

    /// Returns whether the model forgets end markers and otherwise writes its calls right, so that
    /// [`Unclosed::Run`](plaincall::reply::Unclosed::Run) helps it: at least half of the rejected calls lack nothing else.
    pub const fn forgets_end_markers(&self) -> bool {
        self.unclosed > 0 && self.unclosed * 2 >= self.calls.saturating_sub(self.well_formed)
    }

    fn new(arm: &Arm, tasks: &[Task], attempts: &[Attempt]) -> Self {
        let all: Vec<&Attempt> = attempts.iter().filter(|one| one.arm == arm.name).collect();
        let (failed, own): (Vec<&Attempt>, Vec<&Attempt>) =
            all.iter().partition(|attempt| attempt.is_server_failure);
        let count = |is: &dyn Fn(&Attempt) -> bool| {
            u32::try_from(own.iter().filter(|attempt| is(attempt)).count()).unwrap_or(u32::MAX)
        };
        let sum = |of: &dyn Fn(&Attempt) -> u32| own.iter().map(|attempt| of(attempt)).sum();
        let total = |of: &dyn Fn(&Attempt) -> u64| own.iter().map(|attempt| of(attempt)).sum();
        let (attempted, correct) = (count(&|_| true), count(&|attempt| attempt.is_correct));
        Self {
            arm: arm.name.to_owned(),
            unavailable: None,
            stopped: None,
            attempts: attempted,
            correct,
            interval: wilson(correct, attempted),
            correct_with_calls: count(&|attempt| attempt.is_correct && attempt.calls > 0),
            calls: sum(&|attempt| attempt.calls),
            well_formed: sum(&|attempt| attempt.well_formed),
            succeeded: sum(&|attempt| attempt.succeeded),
            repaired: sum(&Attempt::repaired),
            unclosed: sum(&|attempt| attempt.unclosed),
            input_tokens: total(&|attempt| attempt.input_tokens),
            output_tokens: total(&|attempt| attempt.output_tokens),
            is_estimated: own.iter().any(|attempt| attempt.is_estimated),
            milliseconds: total(&|attempt| attempt.milliseconds),
            server_failures: u32::try_from(failed.len()).unwrap_or(u32::MAX),
            tasks: tasks
                .iter()
                .filter_map(|task| TaskReport::new(&task.name, &own))
                .collect(),
        }
    }
}

impl TaskReport {
    fn new(task: &str, attempts: &[&Attempt]) -> Option<Self> {
        let mut report = Self {
            task: task.to_owned(),
            attempts: 0,
            correct: 0,
            calls: 0,
            well_formed: 0,
            input_tokens: 0,
            output_tokens: 0,
            milliseconds: 0,
        };
        for attempt in attempts.iter().filter(|attempt| attempt.task == task) {
            report.attempts += 1;
            report.correct += u32::from(attempt.is_correct);
            report.calls += attempt.calls;
            report.well_formed += attempt.well_formed;
            report.input_tokens += attempt.input_tokens;
            report.output_tokens += attempt.output_tokens;
            report.milliseconds += attempt.milliseconds;
        }
        (report.attempts > 0).then_some(report)
    }
}

#[cfg(test)]
mod tests {
    use super::wilson;

    /// The expected values were computed independently, from the roots of the quadratic equation.
    #[test]
    fn intervals() {
        for (correct, attempts, low, high) in [
            (0, 10, 0.0, 0.2775),
            (10, 10, 0.7225, 1.0),
            (5, 10, 0.2366, 0.7634),
            (81, 120, 0.5869, 0.7522),
            (1, 3, 0.0615, 0.7923),
            (0, 0, 0.0, 1.0),
        ] {
            let interval = wilson(correct, attempts);
            let found = (interval.low, interval.high);
            assert_eq!(found, (low, high), "{correct} of {attempts}");
        }
    }
}
