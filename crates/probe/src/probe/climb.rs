//! Which tasks come next, and with which arms: levels, arms that stop early, and arms in reserve.

use std::collections::BTreeSet;

use tokio::time::Instant;

use super::{AttemptSlot, Probing};
use crate::attempt::Attempt;
use crate::budget::next_task;
use crate::report::{Interval, wilson};

/// An arm has to solve one of so many attempts of a level, so that the next one begins.
const TENTH: u32 = 10;
/// The last level that decides whether the arms in reserve are tried.
const LAST: u8 = 3;

/// Attempts and correct ones.
#[derive(Clone, Copy, Debug, Default)]
struct Solved {
    attempts: u32,
    correct: u32,
}

impl Solved {
    fn interval(self) -> Interval {
        wilson(self.correct, self.attempts)
    }
}

impl Probing {
    /// Chooses what comes next, when everything before has ended.
    pub(super) fn choose(&mut self) {
        while self.waiting.is_empty()
            && self.running.is_empty()
            && self.error.is_none()
            && !self.is_out_of_time
        {
            if self.level > 0 {
                self.stop_worse_arms();
                if self.bring_reserve() {
                    continue;
                }
            }
            let is_chosen = match self.deadline {
                Some(deadline) => self.begin_task(deadline),
                None => self.begin_kind(),
            };
            if !is_chosen {
                return;
            }
        }
    }

    /// Begins the next kind of tasks. Returns `false` if there is none, or no arm solved enough of the level before.
    fn begin_kind(&mut self) -> bool {
        let Some(task) = self
            .open
            .first()
            .and_then(|task| self.probe.tasks.get(*task))
        else {
            return false;
        };
        let (level, kind) = (task.level, task.kind.clone());
        if !self.reach(level) {
            self.open.clear();
            return false;
        }
        let tasks = &self.probe.tasks;
        let is_of_kind = |task: &usize| tasks.get(*task).is_some_and(|task| task.kind == kind);
        let open = std::mem::take(&mut self.open).into_iter();
        let (chosen, open): (Vec<usize>, _) = open.partition(is_of_kind);
        self.open = open;
        self.add(&chosen, &self.arms());
        true
    }

    /// Climbs to this level, if an arm solved enough of the one before.
    fn reach(&mut self, level: u8) -> bool {
        let is_reached = self.level == 0 || self.level == level || self.is_solved(self.level);
        if is_reached {
            self.level = level;
        }
        is_reached
    }

    /// Begins the next task within a budget, with every arm: of a level that was reached. Returns `false` if none fits.
    fn begin_task(&mut self, deadline: Instant) -> bool {
        let levels: BTreeSet<u8> = self.probe.tasks.iter().map(|task| task.level).collect();
        let mut above = levels.range(self.level + 1..);
        while above.next().is_some_and(|level| self.reach(*level)) {}
        let (tasks, arms) = (&self.probe.tasks, self.arms());
        let left = deadline.saturating_duration_since(Instant::now());
        let share = left.as_secs_f64() / f64::from(u32::try_from(arms.len()).unwrap_or(1).max(1));
        let is_reached = |task: &&usize| {
            let task = tasks.get(**task);
            task.is_some_and(|task| task.level <= self.level)
        };
        let open: Vec<usize> = self.open.iter().filter(is_reached).copied().collect();
        let Some(task) = next_task(&open, &self.started, tasks, &self.pace, share) else {
            self.is_out_of_time = !open.is_empty();
            return false;
        };
        self.open.retain(|other| *other != task);
        self.started.push(task);
        self.add(&[task], &arms);
        true
    }

    /// Adds the attempts at these tasks. Those of an earlier run have ended already.
    fn add(&mut self, tasks: &[usize], arms: &[usize]) {
        for repetition in 1..=self.probe.repeat {
            for task in tasks {
                for turn in 0..arms.len() {
                    // The order of the arms rotates, so that none always comes first.
                    let turn = (turn + task + repetition as usize - 1) % arms.len();
                    let Some(arm) = arms.get(turn) else { continue };
                    let slot = AttemptSlot {
                        repetition,
                        task: *task,
                        arm: *arm,
                    };
                    match self.take_recorded(slot) {
                        Some(attempt) => self.done.push((slot, attempt)),
                        None => self.waiting.push_back(slot),
                    }
                }
            }
        }
    }

    fn take_recorded(&mut self, slot: AttemptSlot) -> Option<Attempt> {
        let arm = self.probe.arms.get(slot.arm)?.name;
        let task = &self.probe.tasks.get(slot.task)?.name;
        let place = self.recorded.iter().position(|attempt| {
            attempt.arm == arm && attempt.task == *task && attempt.repetition == slot.repetition
        });
        place.map(|place| self.recorded.swap_remove(place))
    }

    /// Stops each arm whose interval is below that of the best one.
    fn stop_worse_arms(&mut self) {
        let arms = self.arms().into_iter();
        let intervals = arms.map(|arm| (arm, self.solved(arm, None).interval()));
        let intervals: Vec<(usize, Interval)> = intervals.collect();
        let best = intervals.iter().map(|(_, interval)| interval.low);
        let best = best.fold(0.0, f64::max);
        let worse = intervals
            .into_iter()
            .filter(|(_, interval)| interval.high < best);
        let level = self.level;
        self.stopped.extend(worse.map(|(arm, _)| (arm, level)));
    }

    /// Lets the arms in reserve take part, if no other one solved half of the first levels. They begin with the tasks that the others
    /// had.
    fn bring_reserve(&mut self) -> bool {
        let reserve = self.first_reserve..self.probe.arms.len();
        // An arm without attempts shows nothing yet.
        let is_able = |solved: Solved| solved.correct * 2 >= solved.attempts;
        let has_able = || {
            let mut arms = self.arms().into_iter();
            arms.any(|arm| is_able(self.solved(arm, None)))
        };
        if reserve.is_empty() || self.level > LAST || has_able() {
            return false;
        }
        self.first_reserve = reserve.end;
        let tasks: BTreeSet<usize> = self.done.iter().map(|(slot, _)| slot.task).collect();
        let tasks: Vec<usize> = tasks.into_iter().collect();
        let arms = self.arms_in(reserve);
        self.add(&tasks, &arms);
        true
    }

    /// Returns whether an arm solved a tenth of this level.
    fn is_solved(&self, level: u8) -> bool {
        let arms = self.arms().into_iter();
        let mut solved = arms.map(|arm| self.solved(arm, Some(level)));
        solved.any(|solved| solved.correct > 0 && solved.correct * TENTH >= solved.attempts)
    }

    /// Counts the attempts of an arm, in all levels or one. Those that the server failed do not count.
    fn solved(&self, arm: usize, level: Option<u8>) -> Solved {
        let mut solved = Solved::default();
        for (slot, attempt) in &self.done {
            let of_task = self.probe.tasks.get(slot.task).map(|task| task.level);
            if slot.arm == arm
                && !attempt.is_server_failure
                && (level.is_none() || of_task == level)
            {
                solved.attempts += 1;
                solved.correct += u32::from(attempt.is_correct);
            }
        }
        solved
    }

    /// The arms that take part.
    fn arms(&self) -> Vec<usize> {
        self.arms_in(0..self.first_reserve)
    }

    /// The arms of this range that can be tried and have not stopped.
    fn arms_in(&self, range: std::ops::Range<usize>) -> Vec<usize> {
        let is_possible = |arm: &usize| {
            let name = self.probe.arms.get(*arm).map(|arm| arm.name);
            name.is_some_and(|name| !self.unavailable.contains_key(name))
                && !self.stopped.contains_key(arm)
        };
        range.filter(is_possible).collect()
    }

    /// The tasks of attempts in levels that follow.
    pub(super) fn later(&self) -> impl Iterator<Item = usize> {
        let count = self.arms().len() * self.probe.repeat as usize;
        let open = self.open.iter().filter(|_| self.probe.budget.is_none());
        open.flat_map(move |task| std::iter::repeat_n(*task, count))
    }

    /// The budget is used up: what was not finished with every arm does not count.
    pub(super) fn stop_within_round(&mut self) {
        self.running.abort_all();
        self.waiting.clear();
        self.is_out_of_time = true;
        let done = self.done.iter().map(|(slot, _)| (slot.task, slot.arm));
        let (done, arms): (BTreeSet<_>, _) = (done.collect(), self.arms());
        let is_done = |task: usize| arms.iter().all(|arm| done.contains(&(task, *arm)));
        self.done.retain(|(slot, _)| {
            let is_kept = self.started.contains(&slot.task) && is_done(slot.task);
            is_kept || self.stopped.contains_key(&slot.arm)
        });
    }
}
