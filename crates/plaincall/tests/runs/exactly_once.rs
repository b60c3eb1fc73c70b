//! Every call ends exactly once, all subscribers get the same events, and nothing is left behind.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::gate::GateFuture;
use plaincall::log::{Storage, read_log};
use plaincall::policy::{Dependents, Order, Retry, Writes};
use plaincall::tool::Arguments;
use plaincall::{
    Decision, Effect, Gate, Log, Observer, Policy, Request, Run, RunEvent, Status, Stop, Tool,
    Toolbox,
};
use plaincall_oracle::arbitrary_texts::Random;
use tokio::time::sleep;

use crate::runs::scene::{Milliseconds, sleeper, written};

fn toolbox() -> Toolbox {
    let retry = Retry::attempts(3);
    let fallback = Dependents::Fallback("instead".to_owned());
    let fails = |_: u64, _: &_| Err("failed".into());
    Toolbox::new([
        sleeper("sleep", |_, _| Ok("x".repeat(300))),
        sleeper("write", |_, _| Ok(String::new())).effect(Effect::Write),
        sleeper("fail", fails),
        sleeper("flaky", fails).retry(retry),
        sleeper("guess", fails).dependents(fallback),
        sleeper("panic", |_, _| panic!("no more")),
        sleeper("short", |_, _| Ok(String::new())).timeout(Duration::from_millis(40)),
        sleeper("alone", |_, _| Ok(String::new())).exclusive(),
        sleeper("secret", |_, _| {
            Ok("the transform breaks on this".to_owned())
        }),
        sleeper("finish", |ms, _| match ms {
            0..20 => Ok(String::new()),
            _ => Err("not yet".into()),
        })
        .finishes(),
        Tool::new("stubborn", |Milliseconds { ms }, context| async move {
            context.cancellation().cancelled().await;
            sleep(Duration::from_millis(ms)).await;
            Ok("after all".to_owned())
        })
        .effect(Effect::Read)
        .timeout(Duration::from_millis(60))
        .grace(Duration::from_millis(30)),
    ])
    .unwrap()
}

const NAMES: [&str; 14] = [
    "sleep", "write", "fail", "flaky", "guess", "panic", "short", "alone", "secret", "finish",
    "stubborn", "sleep", "write", "nothing",
];

/// Decides by the number of the call.
struct Moody(u64);

impl Gate for Moody {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let mut random = Random::new(self.0 ^ (u64::from(request.call) << 32));
            sleep(Duration::from_millis(random.below(30) as u64)).await;
            Ok(match random.below(12) {
                0 => Decision::deny("no"),
                1 => return Err("unknown error".into()),
                2 => panic!("off its hinges"),
                3 => std::future::pending().await,
                4 => Decision::Always,
                5 => Decision::Edit {
                    arguments: Arguments::from_pairs([("ms", "7")])?,
                },
                6 => Decision::Edit {
                    arguments: Arguments::from_pairs([("ms", "x")])?,
                },
                _ => Decision::Allow,
            })
        })
    }
}

/// Panics at the event with this number.
struct Fragile(u64);

impl Observer for Fragile {
    fn observe(&mut self, _: &RunEvent) {
        self.0 = self.0.checked_sub(1).unwrap();
    }
}

#[derive(Clone, Default)]
struct Memory(Arc<Mutex<Vec<u8>>>);

impl Storage for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A reply of random calls; some depend on unknown ids, on themselves, or on each other.
fn scene(random: &mut Random) -> String {
    let count = random.below(16);
    let mut scene = String::new();
    for call in 0..count {
        let name = random.pick(&NAMES);
        let id = if random.below(12) == 0 { 0 } else { call };
        let mut dependencies = Vec::new();
        while random.below(2) == 0 {
            dependencies.push(format!("c{}", random.below(count + 1)));
        }
        let ms = random.below(80);
        write!(scene, "c{id}={name},{ms}<{} ", dependencies.join(",")).unwrap();
    }
    scene
}

fn policy(random: &mut Random) -> Policy {
    let orders = [Order::Graph, Order::Sequential, Order::StopOnError];
    let mut maybe = |limit: usize| random.one_in(4).then(|| random.below(limit) + 1);
    Policy::default()
        .concurrent(u32::try_from(maybe(4).unwrap_or(0)).unwrap())
        .calls_per_turn(maybe(6).map(|limit| u32::try_from(limit).unwrap()))
        .turn_timeout(maybe(150).map(|ms| Duration::from_millis(ms as u64)))
        .writes(match maybe(1) {
            Some(_) => Writes::AtEndOfTurn,
            None => Writes::AtOnce,
        })
        .block_order(orders[maybe(3).unwrap_or(1) - 1])
        .gate_timeout(Duration::from_millis(50))
        .result_limit(100)
}

/// The number of conversations: `RUN_CASES`, for longer runs.
#[expect(clippy::disallowed_methods, reason = "only a test reads it")]
fn rounds() -> u64 {
    std::env::var("RUN_CASES").map_or(600, |count| count.parse().unwrap())
}

#[tokio::test(start_paused = true)]
async fn every_call_ends_once() {
    let mut seen = BTreeMap::<&str, u32>::new();
    for round in 0..rounds() {
        let mut random = Random::new(round + 7);
        let memory = Memory::default();
        let mut builder = Run::builder(toolbox())
            .policy(policy(&mut random))
            .gate(Moody(round))
            .transform(|name, text| match name {
                "secret" => panic!("the transform has broken down"),
                _ => text,
            });
        if round % 8 == 0 {
            builder = builder.observer(Fragile(random.below(60) as u64));
        }
        let has_log = random.below(2) == 0;
        if has_log {
            builder = builder.log(Log::to(memory.clone()));
        }
        let mut run = builder.build().unwrap();
        let mut events = run.events();
        let mut ends = BTreeMap::new();
        for _ in 0..2 {
            let scene = scene(&mut random);
            let text = written(&scene, false).concat();
            let (stop, end) = match random.below(4) {
                0 => (Stop::Broken, random.below(text.len() + 1)),
                1 => (Stop::Length, random.below(text.len() + 1)),
                _ => (Stop::Natural, text.len()),
            };
            let cancel_at = random.one_in(3).then(|| random.below(150) as u64);
            let size = random.below(200) + 1;
            let canceller = run.canceller();
            let cancelling = async {
                if let Some(at) = cancel_at {
                    sleep(Duration::from_millis(at)).await;
                    canceller.cancel();
                }
            };
            let mut turn = run.turn();
            let playing = async {
                for piece in text.as_bytes()[..end].chunks(size) {
                    turn.feed(piece);
                    sleep(Duration::from_millis(random.below(20) as u64)).await;
                }
                turn.finish(stop).await
            };
            let (results, ()) = tokio::join!(playing, cancelling);
            for result in &results {
                *seen.entry(result.status.name()).or_default() += 1;
                assert!(ends.insert(result.call, result.status).is_none(), "{round}");
                let has_error = result.error.is_some();
                assert_eq!(
                    has_error,
                    result.status != Status::Ok,
                    "{round}: {result:?}"
                );
            }
        }
        run.close().await.unwrap();
        let metrics = tokio::runtime::Handle::current().metrics();
        assert_eq!(metrics.num_alive_tasks(), 0, "{round}");
        let mut events_seen = Vec::new();
        while let Some(event) = events.next().await {
            events_seen.push(event);
        }
        check(&events_seen, &ends, round);
        if has_log {
            let record = read_log(&memory.0.lock().unwrap()).unwrap();
            check(&record.events, &ends, round);
        }
    }
    let least = u32::try_from(rounds() * 2 / 3).unwrap();
    for status in ["ok", "error", "skipped", "rejected", "cancelled"] {
        assert!(seen[status] > least, "{seen:?}");
    }
    assert_eq!(seen.len(), 5, "{seen:?}");
}

/// Each call has one result, which is the one in the turn, and the ends of turns count them.
fn check(events: &[RunEvent], ends: &BTreeMap<u32, Status>, round: u64) {
    let (mut appeared, mut results, mut turns, mut counted) = (0, BTreeMap::new(), 0, 0);
    for event in events {
        match event {
            RunEvent::Call(_) => appeared += 1,
            RunEvent::Result(result) => {
                assert!(
                    results.insert(result.call, result.status).is_none(),
                    "{round}"
                );
            }
            RunEvent::Start(started) => {
                assert!(!results.contains_key(&started.call), "{round}");
            }
            RunEvent::TurnEnd(end) => {
                let counts = end.counts;
                turns += 1;
                counted += counts.ok + counts.error + counts.skipped;
                counted += counts.rejected + counts.cancelled + counts.unknown;
            }
            _ => {}
        }
    }
    assert_eq!(&results, ends, "{round}");
    assert_eq!(
        (appeared, counted as usize, turns),
        (ends.len(), ends.len(), 2),
        "{round}"
    );
}
