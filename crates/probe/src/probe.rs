//! A comparison: which attempts there are, and how they are run.

mod climb;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{Constrain, Model, ModelError, ModelErrorKind};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::arm::Arm;
use crate::attempt::{self, Attempt};
use crate::budget::Pace;
use crate::observed::Requested;
use crate::report::Report;
use crate::task::{Task, tasks};

/// How many attempts in a row may fail because of the server before the comparison stops.
const FAILURES: u32 = 3;

/// A comparison of arms with a model.
pub struct Probe {
    model: Arc<dyn Model>,
    arms: Vec<Arm>,
    /// How many of the arms, the last ones, wait for a model that solves little.
    reserve: usize,
    reply_tokens: Option<u32>,
    tasks: Vec<Task>,
    repeat: u32,
    concurrent: usize,
    time: Duration,
    seed: Option<u64>,
    budget: Option<Duration>,
    finished: Vec<Attempt>,
}

impl Probe {
    /// Creates a comparison of the default arms with all tasks: once each, one at a time, at most ten minutes each.
    ///
    /// It climbs from level to level while an arm solves a tenth of one. An arm that is certainly worse than the best one (their
    /// intervals do not overlap) stops.
    pub fn new(model: impl Model) -> Self {
        Self {
            model: Arc::new(model),
            arms: Arm::all()
                .into_iter()
                .filter(|arm| arm.is_default)
                .collect(),
            reserve: 0,
            reply_tokens: None,
            tasks: tasks(),
            repeat: 1,
            concurrent: 1,
            time: Duration::from_mins(10),
            seed: None,
            budget: None,
            finished: Vec::new(),
        }
    }

    /// Sets the arms.
    pub fn arms(mut self, arms: impl IntoIterator<Item = Arm>) -> Self {
        self.arms = arms.into_iter().collect();
        self.reserve = 0;
        self
    }

    /// Adds arms that are tried only if no other one solves half of the first three levels.
    pub fn reserve(mut self, arms: impl IntoIterator<Item = Arm>) -> Self {
        let count = self.arms.len();
        self.arms.extend(arms);
        self.reserve += self.arms.len() - count;
        self
    }

    /// Limits each reply to this many tokens. Easy levels have a limit of their own.
    pub fn reply_tokens(mut self, tokens: Option<u32>) -> Self {
        self.reply_tokens = tokens;
        self
    }

    /// Sets the tasks.
    pub fn tasks(mut self, tasks: impl IntoIterator<Item = Task>) -> Self {
        self.tasks = tasks.into_iter().collect();
        self
    }

    /// Sets the number of repetitions.
    pub fn repeat(mut self, times: u32) -> Self {
        self.repeat = times;
        self
    }

    /// Sets the number of concurrent attempts.
    pub fn concurrent(mut self, count: usize) -> Self {
        self.concurrent = count.max(1);
        self
    }

    /// Sets the time limit of an attempt.
    pub fn time(mut self, time: Duration) -> Self {
        self.time = time;
        self
    }

    /// Sets the seed of the first repetition. Each further repetition adds 1; all arms get the same. Default: none is sent.
    pub fn seed(mut self, seed: Option<u64>) -> Self {
        self.seed = seed;
        self
    }

    /// Limits the time of the whole comparison. Tasks are then chosen by the measured time: of different kinds, without the
    /// agent-sized prompt, each once and with every arm. A task that does not end with every arm does not count. Replies to easy tasks
    /// are short, unless the model reasons.
    pub fn budget(mut self, budget: Duration) -> Self {
        self.budget = Some(budget);
        self
    }

    /// Continues a comparison: these attempts are not repeated.
    pub fn finished(mut self, attempts: Vec<Attempt>) -> Self {
        self.finished = attempts;
        self
    }

    /// Starts on the current tokio runtime when it is first polled.
    pub fn begin(mut self) -> Probing {
        let unavailable = self
            .arms
            .iter()
            .filter_map(|arm| Some((arm.name, missing(&*self.model, arm)?.to_owned())))
            .collect();
        let mut open: Vec<usize> = (0..self.tasks.len()).collect();
        if self.budget.is_some() {
            open.retain(|task| {
                let task = self.tasks.get(*task);
                task.is_some_and(|task| !task.is_agent_sized)
            });
        }
        let first_reserve = self.arms.len() - self.reserve;
        let mut probing = Probing {
            waiting: VecDeque::new(),
            level: 0,
            open,
            first_reserve,
            recorded: std::mem::take(&mut self.finished),
            running: JoinSet::new(),
            started: Vec::new(),
            done: Vec::new(),
            stopped: BTreeMap::new(),
            pace: Pace::default(),
            is_brief: self.budget.is_some(),
            failures: 0,
            error: None,
            unavailable,
            deadline: None,
            is_out_of_time: false,
            probe: self,
        };
        if probing.probe.budget.is_none() {
            probing.choose();
        }
        probing
    }
}

/// Returns why a model cannot be tried with an arm.
fn missing(model: &dyn Model, arm: &Arm) -> Option<&'static str> {
    if arm.is_native() && !model.supports_native_calls() {
        return Some("this model has no native tool calls");
    }
    (arm.has_grammar() && model.constrains() == Constrain::Never)
        .then_some("no grammar constrains this model")
}

/// The position of an attempt in the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct AttemptSlot {
    pub(crate) repetition: u32,
    pub(crate) task: usize,
    pub(crate) arm: usize,
}

/// A running comparison. Dropping it cancels the attempts.
pub struct Probing {
    probe: Probe,
    waiting: VecDeque<AttemptSlot>,
    /// The level that was reached; 0 before the first task.
    level: u8,
    /// The tasks that were not begun.
    open: Vec<usize>,
    /// The first arm that waits for a model that solves little. All arms before it take part.
    first_reserve: usize,
    /// Attempts of an earlier run, as far as they are not in `done`.
    recorded: Vec<Attempt>,
    running: JoinSet<(AttemptSlot, Attempt, Option<ModelError>, bool)>,
    /// The tasks that were started within a budget.
    started: Vec<usize>,
    done: Vec<(AttemptSlot, Attempt)>,
    /// The arms that stopped early, and the level in which they did.
    stopped: BTreeMap<usize, u8>,
    pace: Pace,
    /// Whether replies are short: within a budget, unless the model reasons.
    is_brief: bool,
    /// How many attempts in a row failed because of the server.
    failures: u32,
    error: Option<ModelError>,
    /// The arms that the model or its server does not support, and why.
    unavailable: BTreeMap<&'static str, String>,
    deadline: Option<Instant>,
    is_out_of_time: bool,
}

impl Probing {
    /// Returns the next finished attempt; `None` after the last, if the server fails, or when the budget is used up. Cancel
    /// safe.
    pub async fn next(&mut self) -> Option<Attempt> {
        if let Some(budget) = self.probe.budget {
            self.deadline.get_or_insert(Instant::now() + budget);
        }
        loop {
            self.choose();
            while self.running.len() < self.probe.concurrent
                && let Some(slot) = self.waiting.pop_front()
            {
                self.start(slot);
            }
            let deadline = self.deadline;
            let joined = tokio::select! {
                biased;
                joined = self.running.join_next() => joined,
                () = sleep_until(deadline.unwrap_or_else(Instant::now)), if deadline.is_some() => {
                    self.stop_within_round();
                    return None;
                }
            };
            let Ok((slot, attempt, error, is_brief)) = joined? else {
                // The runtime shut down, or the attempt was aborted.
                continue;
            };
            if is_brief && attempt.has_reasoning() {
                // Its limit was too low: again, with another one.
                self.is_brief = false;
                self.waiting.push_front(slot);
                continue;
            }
            self.note(slot, &attempt, error);
            self.done.push((slot, attempt.clone()));
            return Some(attempt);
        }
    }

    fn start(&mut self, slot: AttemptSlot) {
        let Probe { arms, tasks, .. } = &self.probe;
        let (Some(arm), Some(task)) = (arms.get(slot.arm), tasks.get(slot.task)) else {
            return;
        };
        let seed = self.probe.seed;
        let seed = seed.map(|seed| seed.wrapping_add(u64::from(slot.repetition - 1)));
        let (model, arm, task) = (Arc::clone(&self.probe.model), *arm, task.clone());
        let (time, is_brief) = (self.probe.time, self.is_brief);
        let limits = [self.probe.reply_tokens, task.reply_tokens(is_brief)];
        let requested = Requested {
            seed,
            max_tokens: limits.into_iter().flatten().min(),
        };
        self.running.spawn(async move {
            let run = attempt::run(model, arm, task, slot.repetition, requested, time);
            let (attempt, error) = run.await;
            (slot, attempt, error, is_brief)
        });
    }

    /// Counts an attempt. Stops after a permanent error of the server, or after repeated ones; native calls or a grammar that the
    /// server refuses only end that arm.
    fn note(&mut self, slot: AttemptSlot, attempt: &Attempt, error: Option<ModelError>) {
        let Some(error) = error.filter(|_| attempt.is_server_failure) else {
            self.failures = 0;
            if let Some(task) = self.probe.tasks.get(slot.task) {
                self.pace.add(task, attempt);
            }
            return;
        };
        let arm = self.probe.arms.get(slot.arm);
        let arm = arm.filter(|arm| arm.is_native() || arm.has_grammar());
        if let Some(arm) = arm.filter(|_| error.kind == ModelErrorKind::Refused) {
            self.waiting.retain(|other| other.arm != slot.arm);
            self.unavailable.entry(arm.name).or_insert(error.message);
            return;
        }
        self.failures += 1;
        let is_final = matches!(
            error.kind,
            ModelErrorKind::Refused | ModelErrorKind::Connect | ModelErrorKind::NotRunning
        );
        if is_final || self.failures >= FAILURES {
            self.waiting.clear();
            self.running.abort_all();
            self.error.get_or_insert(error);
        }
    }

    /// Returns the number of finished attempts, including earlier ones.
    pub fn finished(&self) -> usize {
        self.done.len()
    }

    /// Returns the number of all attempts, if no arm stops early and each level is reached. Within a budget it grows with the chosen
    /// tasks.
    pub fn total(&self) -> usize {
        self.done.len() + self.running.len() + self.waiting.len() + self.later().count()
    }

    /// Returns an estimate of the remaining time, by the time and the size of the finished tasks.
    pub fn time_left(&self) -> Option<Duration> {
        if let Some(deadline) = self.deadline {
            return Some(deadline.saturating_duration_since(Instant::now()));
        }
        let waiting = self.waiting.iter().map(|slot| slot.task);
        let tasks = waiting.chain(self.later());
        let sizes = tasks.filter_map(|task| self.probe.tasks.get(task).map(Task::size));
        let concurrent = u32::try_from(self.probe.concurrent).unwrap_or(u32::MAX);
        let seconds = self.pace.seconds(sizes.sum())? / f64::from(concurrent);
        Duration::try_from_secs_f64(seconds).ok()
    }

    /// Returns whether every attempt has finished.
    pub fn is_complete(&self) -> bool {
        let is_idle = self.waiting.is_empty() && self.running.is_empty();
        is_idle && self.error.is_none() && !self.is_out_of_time
    }

    /// Returns the error that stopped the comparison.
    pub fn error(&self) -> Option<&ModelError> {
        self.error.as_ref()
    }

    /// Returns the report so far.
    pub fn report(&self) -> Report {
        let mut done: Vec<&(AttemptSlot, Attempt)> = self.done.iter().collect();
        done.sort_by_key(|(slot, _)| (slot.task, slot.arm, slot.repetition));
        let attempts = done.into_iter().map(|(_, attempt)| attempt.clone());
        let Probe { arms, tasks, .. } = &self.probe;
        let stopped = self.stopped.iter();
        let stopped = stopped.filter_map(|(arm, level)| Some((arms.get(*arm)?.name, *level)));
        Report::new(
            arms.get(..self.first_reserve).unwrap_or(arms),
            tasks,
            attempts.collect(),
            &self.unavailable,
            &stopped.collect(),
        )
    }
}
