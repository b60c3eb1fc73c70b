//! The plan against its oracle, on random conversations.
//!
//! Each conversation is drawn from a number; a failure names it. To play that one alone:
//! `PLAN_CASE=<number> cargo test -p plaincall-testkit --test plan`.
#![allow(clippy::disallowed_methods, reason = "PLAN_CASE replays one case")]
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

mod driver;
mod scenario;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use driver::Driver;
use plaincall_plan::Counts;
use plaincall_testkit::plan_oracle::{Fate, Oracle};
use scenario::{Random, Scenario};

const CASES: u64 = 100_000;

/// What the conversations of one thread came to, to show that they are worth playing.
#[derive(Default)]
struct Tally {
    ended: Counts,
    reasons: [u32; 8],
    refused: u32,
    held_by_slots: u32,
}

/// Plays one conversation and compares.
fn check(case: u64, tally: &mut Tally) {
    let mut random = Random::new(case);
    let mut scenario = Scenario::draw(&mut random);
    let mut driver = Driver::new(&scenario, &mut random);
    driver.play();
    let cancelled = driver.cancelled.clone();
    let (seen, moments) = (driver.statuses(), driver.moments());
    let counts = driver.plan.counts();
    for (reason, count) in driver.reasons.into_iter().enumerate() {
        tally.reasons[reason] += count;
    }
    tally.refused += driver.refused;
    tally.held_by_slots += driver.held_by_slots;

    for (number, call) in scenario.calls_mut().enumerate() {
        if cancelled.contains(&number) {
            call.fate = Fate::Cancelled;
        }
    }
    let oracle = Oracle::new(&scenario.conversation);
    let beside = |a: usize, b: usize| moments[a].0.is_some_and(|left| left < moments[b].1);
    let expected = oracle.statuses(&beside);
    assert_eq!(seen, expected, "the end statuses");

    tally.ended.ok += counts.ok;
    tally.ended.error += counts.error;
    tally.ended.skipped += counts.skipped;
    tally.ended.rejected += counts.rejected;
    tally.ended.cancelled += counts.cancelled;
    tally.ended.unknown += counts.unknown;
}

fn check_all(cases: impl Iterator<Item = u64>) -> Tally {
    let mut tally = Tally::default();
    for case in cases {
        let played = catch_unwind(AssertUnwindSafe(|| check(case, &mut tally)));
        if let Err(panic) = played {
            let scenario = Scenario::draw(&mut Random::new(case));
            eprintln!("PLAN_CASE={case}\n{scenario:?}");
            resume_unwind(panic);
        }
    }
    tally
}

#[test]
fn random_conversations_end_as_the_oracle_says() {
    if let Ok(case) = std::env::var("PLAN_CASE") {
        check_all([case.parse().unwrap()].into_iter());
        return;
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let cases = |thread| (thread as u64..CASES).step_by(threads);
        let start = |thread| scope.spawn(move || check_all(cases(thread)));
        let running: Vec<_> = (0..threads).map(start).collect();
        let join = running.into_iter().map(std::thread::ScopedJoinHandle::join);
        join.map(|tally| tally.unwrap_or_else(|panic| resume_unwind(panic)))
            .collect()
    });

    // Every status, every reason and every kind of wait must come up often, or the comparison says little.
    let sum = |of: &dyn Fn(&Tally) -> u32| tallies.iter().map(of).sum::<u32>();
    let figures = [
        ("ok", sum(&|t| t.ended.ok), 200_000),
        ("error", sum(&|t| t.ended.error), 12_000),
        ("skipped", sum(&|t| t.ended.skipped), 60_000),
        ("rejected", sum(&|t| t.ended.rejected), 100_000),
        ("cancelled", sum(&|t| t.ended.cancelled), 15_000),
        ("unknown", sum(&|t| t.ended.unknown), 4_000),
        ("duplicates", sum(&|t| t.reasons[0]), 15_000),
        ("over the limit", sum(&|t| t.reasons[1]), 10_000),
        ("self", sum(&|t| t.reasons[2]), 12_000),
        ("unknown ids", sum(&|t| t.reasons[3]), 15_000),
        ("cycles", sum(&|t| t.reasons[4]), 6_000),
        ("unfinished", sum(&|t| t.reasons[5]), 4_000),
        ("wrong", sum(&|t| t.reasons[6]), 10_000),
        ("denied", sum(&|t| t.reasons[7]), 4_000),
        ("refused inputs", sum(&|t| t.refused), 200_000),
        ("waits for slots", sum(&|t| t.held_by_slots), 80_000),
    ];
    for (what, found, _) in figures {
        println!("{what}: {found}");
    }
    for (what, found, at_least) in figures {
        assert!(found >= at_least, "{what}: only {found}");
    }
}
