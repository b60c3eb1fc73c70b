//! What trials come to.

use std::cmp::Reverse;

use serde::Serialize;

use super::{Style, Task, Trial};
use crate::model::Usage;

/// What a probe has found out.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProbeReport {
    /// By style, in the order in which they were asked for.
    pub styles: Vec<StyleReport>,
    /// The name of the style that is best, if any task was done right by calls.
    pub recommended: Option<&'static str>,
    /// All trials: by style, then by task.
    pub trials: Vec<Trial>,
}

/// What was found out about a style.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StyleReport {
    /// The style.
    pub style: Style,
    /// How many trials there were.
    pub trials: u32,
    /// In how many of them all was done that was asked for, and nothing else.
    pub right: u32,
    /// How many of these were done by calls: one of the tasks wants none.
    pub by_calls: u32,
    /// How many of those that were right only after the model was told what is wrong with its calls.
    pub repaired: u32,
    /// How many calls the model has written.
    pub calls: u32,
    /// How many of them could be run as they were written.
    pub well_formed: u32,
    /// How many of the others were rejected only because they have no end marker.
    pub unclosed: u32,
    /// What all trials cost.
    pub usage: Usage,
    /// Whether some of that is an estimate.
    pub is_usage_estimated: bool,
    /// How often each task was right, and how often it was tried, in the order of the tasks.
    pub tasks: Vec<TaskReport>,
}

/// What was found out about a task in a style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name.
    pub task: &'static str,
    /// How often it was right.
    pub right: u32,
    /// How often it was tried.
    pub trials: u32,
}

impl ProbeReport {
    pub(super) fn new(styles: &[Style], tasks: &[Task], trials: Vec<Trial>) -> Self {
        let styles: Vec<StyleReport> = styles
            .iter()
            .map(|style| StyleReport::new(style, tasks, &trials))
            .collect();
        let recommended = recommended(&styles).map(|report| report.style.name);
        Self {
            styles,
            recommended,
            trials,
        }
    }

    /// What was found out about the style that is best, if any task was done right by calls.
    pub fn best(&self) -> Option<&StyleReport> {
        recommended(&self.styles)
    }
}

/// The style that is best: most right, then fewest of these repaired, then most calls well formed, then fewest tokens,
/// then the first. Shares are compared, since not all have been tried as often when a probe is called off.
fn recommended(styles: &[StyleReport]) -> Option<&StyleReport> {
    let share = |part: u32, of: u32| u64::from(part) * 1_000_000 / u64::from(of.max(1));
    let rank = |report: &&StyleReport| {
        (
            Reverse(share(report.right, report.trials)),
            share(report.repaired, report.trials),
            Reverse(share(report.well_formed, report.calls)),
            report.usage.total() / u64::from(report.trials.max(1)),
        )
    };
    let good = styles.iter().filter(|report| report.by_calls > 0);
    good.min_by_key(rank)
}

impl StyleReport {
    /// Whether the model forgets end markers and otherwise writes its calls right, so that
    /// [`Unclosed::Run`](plaincall::call::Unclosed::Run) helps it: at least half of the calls that could not run lack nothing else.
    pub const fn forgets_end_markers(&self) -> bool {
        self.unclosed > 0 && self.unclosed * 2 >= self.calls - self.well_formed
    }

    fn new(style: &Style, tasks: &[Task], trials: &[Trial]) -> Self {
        let own = || trials.iter().filter(|trial| trial.style == style.name);
        let count = |is: &dyn Fn(&Trial) -> bool| {
            u32::try_from(own().filter(|trial| is(trial)).count()).unwrap_or(u32::MAX)
        };
        let mut usage = Usage::default();
        for trial in own() {
            usage.add(trial.usage);
        }
        Self {
            style: style.clone(),
            trials: count(&|_| true),
            right: count(&|trial| trial.is_right),
            by_calls: count(&|trial| trial.is_right && trial.calls > 0),
            repaired: count(&|trial| trial.is_right && trial.repairs > 0),
            calls: own().map(|trial| trial.calls).sum(),
            well_formed: own().map(|trial| trial.well_formed).sum(),
            unclosed: own().map(|trial| trial.unclosed).sum(),
            usage,
            is_usage_estimated: own().any(|trial| trial.is_usage_estimated),
            tasks: tasks
                .iter()
                .map(|task| TaskReport {
                    task: task.name,
                    right: count(&|trial| trial.is_right && trial.task == task.name),
                    trials: count(&|trial| trial.task == task.name),
                })
                .collect(),
        }
    }
}
