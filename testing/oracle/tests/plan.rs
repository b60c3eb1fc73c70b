//! The plan against its oracle, on random conversations.
//!
//! Each conversation is drawn from a number; a failure names it. To play that one alone:
//! `PLAN_CASE=<number> cargo test -p plaincall-oracle plan::`. To play more or fewer than 100,000:
//! `PLAN_CASES=<count>`.
#![allow(
    clippy::disallowed_methods,
    reason = "PLAN_CASE replays one case, PLAN_CASES sets their number"
)]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod actions;
mod driver;
mod rules;
mod scenario;
mod tally;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use driver::Driver;
use plaincall_oracle::arbitrary_texts::Random;
use plaincall_oracle::plan_oracle::{Fate, Oracle};
use plaincall_plan::Outcome;
use scenario::Scenario;
use tally::Tally;

const CASES: u64 = 100_000;

/// Plays one conversation and compares.
fn check(case: u64) -> Tally {
    let mut random = Random::new(case);
    let scenario = Scenario::draw(&mut random);
    let mut driver = Driver::new(&scenario, &mut random);
    driver.play();
    driver.tally.add_ended(driver.plan.counts().ended);

    let mut conversation = scenario.conversation.clone();
    let calls = conversation
        .turns
        .iter_mut()
        .flat_map(|turn| &mut turn.calls);
    for (number, call) in calls.enumerate() {
        if driver.cancelled.contains(&number) {
            call.fate = Fate::Cancelled;
        }
        if driver.timed_out.contains(&number) {
            call.fate = Fate::Ends(Outcome::Error);
        }
    }
    let expected = Oracle::new(&conversation).statuses(&driver);
    assert_eq!(driver.statuses(), expected, "the end statuses");
    driver.tally
}

/// The sums of what came up, by name.
fn check_all(cases: impl Iterator<Item = u64>) -> Vec<u64> {
    let mut sums = vec![0; Tally::default().figures().len()];
    for case in cases {
        match catch_unwind(AssertUnwindSafe(|| check(case))) {
            Ok(tally) => {
                for (sum, figure) in sums.iter_mut().zip(tally.figures()) {
                    *sum += u64::from(figure.1);
                }
            }
            Err(panic) => {
                let scenario = Scenario::draw(&mut Random::new(case));
                eprintln!("PLAN_CASE={case}\n{scenario:?}");
                resume_unwind(panic);
            }
        }
    }
    sums
}

#[test]
fn random_conversations_end_as_in_the_oracle() {
    if let Ok(case) = std::env::var("PLAN_CASE") {
        check_all([case.parse().unwrap()].into_iter());
        return;
    }
    let count = std::env::var("PLAN_CASES").map_or(CASES, |count| count.parse().unwrap());
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let parts: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let cases = |thread| (thread as u64..count).step_by(threads);
        let start = |thread| scope.spawn(move || check_all(cases(thread)));
        let running: Vec<_> = (0..threads).map(start).collect();
        let join = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        join.map(|part| part.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });

    // Every status, every reason and every kind of wait must come up often, or the comparison proves little.
    // A small number of conversations proves little anyway.
    let figures = Tally::default().figures().into_iter().enumerate();
    let figures = figures.map(|(place, (what, _, at_least))| {
        let found: u64 = parts.iter().map(|part| part[place]).sum();
        let at_least = if count < CASES / 10 {
            0
        } else {
            at_least * count / CASES
        };
        (what, found, at_least)
    });
    let figures: Vec<_> = figures.collect();
    for (what, found, _) in &figures {
        println!("{what}: {found}");
    }
    for (what, found, at_least) in figures {
        assert!(found >= at_least, "{what}: only {found}");
    }
}
