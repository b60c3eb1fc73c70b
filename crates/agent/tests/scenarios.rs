//! The agent loop, observed from outside: scenarios as data with a model server over HTTP, and random models in
//! memory with a stopped clock.
//!
//! Random conversations are numbered, and a failure reports the number. To run one of them: `AGENT_CASE=<number>
//! cargo test -p plaincall-agent scenarios`. To run another number of cases: `AGENT_CASES=<count>`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]
#![cfg(feature = "http")]

mod agents;
mod changed;
mod drivers;
mod examples;
mod grammars;
mod killed;
mod live;
mod looping;
mod neutral;
mod order;
mod play;
mod reported;
mod scenario;
mod scripts;
mod seeds;
mod sessions;
mod shared_state;
mod slow_log;
mod typed;

use std::any::Any;
use std::sync::Arc;

use tokio::runtime::{Builder, Runtime};
use tokio::task::JoinHandle;

use crate::scenarios::drivers::{is_plain, play_durable, play_subagent};
use crate::scenarios::play::play;
use crate::scenarios::scenario::{File, Scenario};

const FILES: &[(&str, &str)] = &[
    ("answers", include_str!("scenarios/answers.toml")),
    ("calls", include_str!("scenarios/calls.toml")),
    ("faults", include_str!("scenarios/faults.toml")),
    ("cut", include_str!("scenarios/cut.toml")),
    ("loops", include_str!("scenarios/loops.toml")),
    ("limits", include_str!("scenarios/limits.toml")),
    ("gates", include_str!("scenarios/gates.toml")),
    ("cancelling", include_str!("scenarios/cancelling.toml")),
    ("endings", include_str!("scenarios/endings.toml")),
    ("untrusted", include_str!("scenarios/untrusted.toml")),
    ("retries", include_str!("scenarios/retries.toml")),
    ("context", include_str!("scenarios/context.toml")),
    ("subagents", include_str!("scenarios/subagents.toml")),
    ("talks", include_str!("scenarios/talks.toml")),
];

#[test]
fn scenarios() {
    expect_panics();
    let runtime = runtime();
    let mut count = 0;
    let mut playing = Vec::new();
    for (file, text) in FILES {
        let File { scenario } =
            toml::from_str(text).unwrap_or_else(|error| panic!("{file}.toml: {error}"));
        for scenario in scenario {
            count += 1;
            let scenario = Arc::new(scenario);
            let syntaxes = match &scenario.syntax {
                Some(syntax) => vec![syntax.clone()],
                None => vec!["block".to_owned(), "emoji".to_owned()],
            };
            for syntax in syntaxes {
                let name = format!("{file}: {} ({syntax})", scenario.name);
                let scenario = Arc::clone(&scenario);
                playing.push((name, start(&runtime, scenario, syntax)));
            }
        }
    }
    let mut failed = Vec::new();
    for (name, playing) in playing {
        if let Err(error) = runtime.block_on(playing) {
            failed.push(format!("== {name}\n{}", panic_text(&*error.into_panic())));
        }
    }
    assert!(
        failed.is_empty(),
        "{} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(count >= 150, "{count} scenarios");
}

/// Scenarios end alike, with each driver of the agent loop.
#[test]
fn every_driver() {
    expect_panics();
    let runtime = runtime();
    let mut counts = [0; 2];
    let mut failed = Vec::new();
    for (file, text) in FILES {
        let File { scenario } = toml::from_str(text).unwrap();
        for scenario in scenario.into_iter().filter(is_plain) {
            let scenario = Arc::new(scenario);
            for syntax in ["block", "emoji"] {
                if scenario
                    .syntax
                    .as_deref()
                    .is_some_and(|only| only != syntax)
                {
                    continue;
                }
                let (one, other) = (Arc::clone(&scenario), Arc::clone(&scenario));
                let played = [
                    runtime.spawn(async move { play_durable(&one, syntax).await }),
                    runtime.spawn(async move { play_subagent(&other, syntax).await }),
                ];
                for (played, count) in played.into_iter().zip(&mut counts) {
                    match runtime.block_on(played) {
                        Ok(is_played) => *count += usize::from(is_played),
                        Err(error) => {
                            let text = panic_text(&*error.into_panic());
                            failed.push(format!("== {file}: {} ({syntax})\n{text}", scenario.name));
                        }
                    }
                }
            }
        }
    }
    assert!(
        failed.is_empty(),
        "{counts:?}, {} failed:\n{}",
        failed.len(),
        failed.join("\n")
    );
    assert!(counts >= [220, 190], "{counts:?}");
}

fn runtime() -> Runtime {
    let mut builder = Builder::new_multi_thread();
    builder.worker_threads(2).enable_all().build().unwrap()
}

/// Silences the panics of tools and gates that are part of a scenario.
fn expect_panics() {
    std::panic::set_hook(Box::new(|panic| {
        let what = panic.payload_as_str().unwrap_or_default();
        if !what.ends_with(" panics") {
            eprintln!("{panic}");
        }
    }));
}

/// Runs a scenario concurrently with the others; if the clock is stopped, on a separate runtime.
fn start(runtime: &Runtime, scenario: Arc<Scenario>, syntax: String) -> JoinHandle<()> {
    if scenario.step.iter().any(|step| step.pause.is_some()) {
        runtime.spawn_blocking(move || {
            let own = Builder::new_current_thread().enable_all().build().unwrap();
            own.block_on(play(&scenario, &syntax));
        })
    } else {
        runtime.spawn(async move { play(&scenario, &syntax).await })
    }
}

fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_default()
}
