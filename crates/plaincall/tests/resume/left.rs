//! Random conversations whose turns are dropped at random moments, so that calls of several turns are interrupted together.
//! Their log is truncated and resumed repeatedly: this always works, and no call has two results.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use plaincall::{
    Context, Decision, Effect, Gate, Log, Policy, Recovery, Request, Run, RunEvent, Stop, Tool,
    Toolbox,
    gate::{GateFuture, RecoveryFuture},
    log::read_log,
    policy::{Dependents, Order, Retry, Writes},
};
use plaincall_oracle::arbitrary_texts::Random;
use tokio::time::{sleep, timeout};

use crate::resume::play::{edges, folder};

/// The number of times a log is resumed.
const TIMES: usize = 6;

/// Longer than any step takes.
const FOREVER: Duration = Duration::from_hours(24);

/// A gate with different answers for different calls.
struct Moody(u32);

impl Gate for Moody {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            sleep(Duration::from_millis(1)).await;
            Ok(match (self.0 + request.call) % 7 {
                0 => Decision::deny("not today"),
                1 => Decision::Always,
                _ => Decision::Allow,
            })
        })
    }

    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        Box::pin(async move {
            sleep(Duration::from_millis(3)).await;
            let text = String::from("text");
            Ok(match (self.0 + request.call) % 4 {
                0 => Recovery::RunAgain,
                1 => Recovery::Done { output: text },
                2 => Recovery::NotDone { reason: text },
                _ => Recovery::Unknown,
            })
        })
    }
}

/// Tools that take time, even to stop.
fn toolbox() -> Toolbox {
    let tool = |name: &str, effect: Effect, ms: u64, grace: u64, ends_well: bool| {
        Tool::new(name, move |(): (), context: Context| async move {
            sleep(Duration::from_millis(ms + u64::from(context.call() % 5))).await;
            if ends_well {
                Ok(String::new())
            } else {
                Err("no".into())
            }
        })
        .effect(effect)
        .grace(Duration::from_millis(grace))
    };
    let retry = Retry::attempts(3).waits(Duration::from_millis(10), Duration::from_millis(20));
    Toolbox::new([
        tool("look", Effect::Read, 3, 0, true),
        tool("slow", Effect::Read, 40, 30, true),
        tool("put", Effect::Idempotent, 5, 50, true),
        tool("send", Effect::Write, 9, 40, true),
        tool("long", Effect::Write, 60, 90, true),
        tool("fail", Effect::Write, 4, 0, false),
        tool("flaky", Effect::Read, 2, 0, false).retry(retry),
        tool("guess", Effect::Read, 2, 0, false).dependents(Dependents::Run),
        tool("alone", Effect::Write, 8, 20, true).exclusive(),
        tool("one", Effect::Write, 6, 20, true).max_concurrent(1),
    ])
    .unwrap()
}

const TOOLS: [&str; 10] = [
    "look", "slow", "put", "send", "long", "fail", "flaky", "guess", "alone", "one",
];

fn policy(random: &mut Random) -> Policy {
    let orders = [Order::Sequential, Order::StopOnError];
    let orders = [Order::Graph, orders[0], orders[1]];
    Policy::default()
        .concurrent(random.pick(&[0, 1, 2]))
        .block_order(random.pick(&orders))
        .emoji_order(random.pick(&orders))
        .turn_timeout(random.one_in(4).then_some(Duration::from_millis(35)))
        .writes(random.pick(&[Writes::AtOnce, Writes::AtOnce, Writes::AtEndOfTurn]))
}

/// A turn that is finished, or dropped during the reply or while waiting for its results.
async fn play(run: &mut Run, random: &mut Random) {
    let is_emoji = random.below(2) == 0;
    let canceller = run.canceller();
    let mut turn = run.turn();
    for place in 0..random.below(5) {
        let tool = random.pick(&TOOLS);
        let mut call = format!("🛠️[{tool}]🛠️[/end]\n");
        if !is_emoji {
            call = format!("!!!GADGET_START:{tool}:c{place}:");
            if place > 0 && random.below(2) == 0 {
                write!(call, "c{}", random.below(place)).unwrap();
            }
            call.push_str("\n!!!GADGET_END\n");
        }
        turn.feed(call);
        sleep(Duration::from_millis(random.below(12) as u64)).await;
        if random.below(16) == 0 {
            canceller.cancel();
        }
    }
    let patience = Duration::from_millis(random.below(30) as u64);
    match random.below(4) {
        0 => drop(turn),
        1 => drop(timeout(patience, turn.finish(Stop::Natural)).await),
        2 => drop(turn.finish(Stop::Broken).await),
        _ => drop(turn.finish(Stop::Natural).await),
    }
}

async fn resume(mut run: Run, random: &mut Random) {
    if run.unfinished().is_some() {
        let turn = run.resume_turn();
        if random.below(4) == 0 {
            drop(turn);
        } else {
            turn.finish(Stop::Natural).await;
        }
    }
    if random.below(3) == 0 {
        play(&mut run, random).await;
    }
    run.close().await.unwrap();
}

fn check_results(path: &Path, at: &str) {
    let mut results = BTreeMap::<u32, usize>::new();
    for event in read_log(&fs::read(path).unwrap()).unwrap().events {
        if let RunEvent::Result(result) = event {
            *results.entry(result.call).or_default() += 1;
        }
    }
    assert!(
        results.values().all(|count| *count == 1),
        "{at}: {results:?}"
    );
}

async fn check(seed: u64, path: &Path) {
    let random = &mut Random::new(seed);
    let policy = policy(random);
    let build = |log, mood: usize| {
        let gate = Moody(u32::try_from(mood).unwrap());
        Run::builder(toolbox())
            .policy(policy)
            .gate(gate)
            .log(log)
            .build()
    };
    let mut run = build(Log::create(path).unwrap(), 0).unwrap();
    for _ in 0..=random.below(3) {
        play(&mut run, random).await;
    }
    run.close().await.unwrap();
    for time in 0..TIMES {
        let at = format!("seed {seed}, time {time}");
        let log = fs::read(path).unwrap();
        let edges = edges(&log);
        if time + 1 < TIMES && random.below(4) > 0 {
            fs::write(path, &log[..edges[random.below(edges.len())]]).unwrap();
        }
        let Ok(log) = Log::resume(path) else {
            return;
        };
        let run = build(log, random.below(1000)).unwrap_or_else(|error| panic!("{at}: {error}"));
        let end = timeout(FOREVER, resume(run, random)).await;
        assert!(end.is_ok(), "{at}: it does not end");
        check_results(path, &at);
    }
}

async fn check_all(seeds: std::ops::Range<u64>) {
    let folder = folder();
    for seed in seeds {
        check(seed, &folder.path().join(seed.to_string())).await;
    }
}

#[tokio::test(start_paused = true)]
async fn turns_that_are_left_at_random() {
    check_all(0..60).await;
}

/// `cargo xtask promises` runs it.
#[tokio::test(start_paused = true)]
#[ignore = "it takes minutes"]
async fn many_turns_that_are_left_at_random() {
    check_all(1000..9000).await;
}
