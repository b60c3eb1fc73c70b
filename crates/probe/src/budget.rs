//! Estimates of time, and the choice of tasks within a budget.

use crate::attempt::Attempt;
use crate::task::Task;

/// The reserve of an estimate.
const RESERVE: f64 = 1.5;

/// How long attempts take, by the size of their tasks.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Pace {
    seconds: f64,
    size: f64,
}

impl Pace {
    pub(crate) fn add(&mut self, task: &Task, attempt: &Attempt) {
        let milliseconds = u32::try_from(attempt.milliseconds).unwrap_or(u32::MAX);
        self.seconds += f64::from(milliseconds) / 1000.0;
        self.size += task.size();
    }

    /// The time of tasks with this size in total. `None` before the first attempt.
    pub(crate) fn seconds(&self, size: f64) -> Option<f64> {
        (self.size > 0.0).then(|| self.seconds / self.size * size)
    }
}

/// Returns the next task within a budget: of the kind that was chosen least, and of these the smallest. Each arm has `share`
/// seconds left. The first task is the smallest of all.
pub(crate) fn next_task(
    open: &[usize],
    chosen: &[usize],
    tasks: &[Task],
    pace: &Pace,
    share: f64,
) -> Option<usize> {
    let used = |kind: &str| {
        let same = chosen.iter().filter_map(|task| tasks.get(*task));
        same.filter(|task| task.kind == kind).count()
    };
    let fits = |task: &Task| match pace.seconds(task.size()) {
        Some(seconds) => seconds * RESERVE <= share,
        None => chosen.is_empty(),
    };
    let open = open.iter().filter_map(|at| Some((*at, tasks.get(*at)?)));
    let open = open.filter(|(_, task)| fits(task));
    let next = open.min_by(|(_, one), (_, other)| {
        let order = used(&one.kind).cmp(&used(&other.kind));
        order.then(one.size().total_cmp(&other.size()))
    });
    next.map(|(at, _)| at)
}
