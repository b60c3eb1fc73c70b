//! The report of a probe.

use std::cmp::Reverse;

use serde::Serialize;

use super::{Style, Task, Trial};
use crate::model::Usage;

/// The report of a probe.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct ProbeReport {
    /// The results by style, in order.
    pub styles: Vec<StyleReport>,
    /// The name of the best style, if any task passed with calls.
    pub recommended: Option<&'static str>,
    /// All trials: by style, then by task.
    pub trials: Vec<Trial>,
}

/// The results of a style.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct StyleReport {
    /// The style.
    pub style: Style,
    /// The number of trials.
    pub trials: u32,
    /// The number of passed trials.
    pub right: u32,
    /// The number of passed trials with calls; one task needs none.
    pub by_calls: u32,
    /// The number of trials that passed only after a repair message.
    pub repaired: u32,
    /// The number of calls.
    pub calls: u32,
    /// The number of well-formed calls.
    pub well_formed: u32,
    /// The number of calls rejected only because they have no end marker.
    pub unclosed: u32,
    /// The tokens of all trials.
    pub usage: Usage,
    /// Whether some of the usage is an estimate.
    pub is_usage_estimated: bool,
    /// The results by task, in order.
    pub tasks: Vec<TaskReport>,
}

/// The results of a task in a style.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct TaskReport {
    /// Its name.
    pub task: &'static str,
    /// The number of passed trials.
    pub right: u32,
    /// The number of trials.
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

    /// Returns the results of the best style, if any task passed with calls.
    pub fn best(&self) -> Option<&StyleReport> {
        recommended(&self.styles)
    }
}

/// The best style: most passed, then fewest repaired, then most well-formed calls, then fewest tokens, then the first.
/// Shares are compared, because a cancelled probe has a different number of trials for each style.
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
