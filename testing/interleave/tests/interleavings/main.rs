//! Conversations under a scheduler that tries interleavings: the runner's own source, on a model of tokio.
//!
//! Each scene is played many times. The scheduler chooses what is called, what the tools, the gate, the disk and the
//! user do, and above all which task continues at every step. What has to hold in all of them is in `world.rs`. A failure prints
//! the schedule; `shuttle::replay` plays it again.
//!
//! `INTERLEAVINGS=10000 cargo test -p plaincall-interleave` tries more; the ordinary number is [`ORDINARY`].
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "tests"
)]

mod conversation;
mod disk;
mod tools;
mod world;

use conversation::Mishap::{self, Cancel, Drop, Gate, TurnTimeout};
use conversation::{Scene, play, resume};
use disk::Fate;
use shuttle::scheduler::{PctScheduler, RandomScheduler, Scheduler};
use shuttle::{Config, MaxSteps, Runner};
use tokio::{choose, interleave};
use world::World;

/// How many executions each scene has with each scheduler.
const ORDINARY: usize = 100;

/// How many times, at most, the second scheduler lets a task of lower rank go first.
const DEPTH: usize = 4;

/// A task parses text on its stack, in a build without optimization.
const STACK: usize = 512 * 1024;

/// More steps than any conversation takes: one that takes more never ends.
const STEPS: usize = 50_000;

fn run(scene: Scene, scheduler: impl Scheduler + 'static) {
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    Runner::new(scheduler, config).run(move || {
        let world = World::new(scene.log);
        interleave(play(scene, world.clone()));
        world.check_end();
        if world.disk.lock().unwrap().has_a_line() && choose(4) == 0 {
            interleave(resume(scene, world.again()));
        }
    });
}

fn check(log: Option<Fate>, mishaps: &'static [Mishap]) {
    let count = std::env::var("INTERLEAVINGS").ok();
    let count = count.map_or(ORDINARY, |count| count.parse().unwrap());
    let scene = Scene { log, mishaps };
    run(scene, RandomScheduler::new(count));
    run(scene, PctScheduler::new(DEPTH, count));
}

#[test]
fn calls_while_the_text_arrives() {
    check(None, &[]);
}

#[test]
fn a_gate_that_is_late_or_fails() {
    check(None, &[Gate]);
}

#[test]
fn a_run_that_is_cancelled_from_elsewhere() {
    check(None, &[Gate, Cancel]);
}

#[test]
fn a_turn_that_runs_out_of_time() {
    check(None, &[TurnTimeout]);
}

#[test]
fn a_run_that_is_dropped_at_any_moment() {
    check(None, &[Gate, Drop]);
}

#[test]
fn a_slow_log() {
    check(Some(Fate::Slow), &[]);
}

#[test]
fn a_slow_log_of_a_run_that_is_cancelled_or_dropped() {
    check(Some(Fate::Slow), &[Cancel, TurnTimeout, Drop]);
}

#[test]
fn a_log_that_fails() {
    check(Some(Fate::Fails), &[Cancel]);
}

#[test]
fn a_log_that_fails_while_everything_else_goes_wrong() {
    check(Some(Fate::Fails), &[Gate, Cancel, TurnTimeout, Drop]);
}
