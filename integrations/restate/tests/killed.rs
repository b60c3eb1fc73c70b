//! Random conversations on three workers of each of two versions, whose clocks differ by minutes, while workers and the server are
//! killed at random moments.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plaincall::log::{Log, read_log};
use plaincall::{Dialect, Run};
use plaincall_restate::{Finished, Question, QuestionKind};
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::cases;
use serde_json::json;
use tokio::time::sleep;

use crate::graphs::{Graph, Outcome};
use crate::server::{Api, Server, free_port};
use crate::tools::{self, Change, Start};
use crate::workers::{self, Workers};

/// How many conversations there are at the same time.
const AT_ONCE: usize = 32;
/// The time limit for one conversation. Delays take longer on a worker whose clock is ahead.
const LONGEST: Duration = Duration::from_mins(5);
/// The number of conversations that are started with one version before the other one follows.
const SAME_VERSION: u64 = 16;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn no_conversation_is_lost_and_no_write_starts_twice() {
    let directory = tempfile::tempdir().unwrap();
    let [effects, alone] = ["effects", "alone"].map(|name| directory.path().join(name));
    std::fs::create_dir_all(&effects).unwrap();
    std::fs::create_dir_all(&alone).unwrap();
    let server = Server::start(directory.path()).await;
    let shim = workers::shim(directory.path());
    let workers = [Change::None, Change::Version]
        .map(|change| Workers::with_shim(shim.clone(), 3, free_port(), &effects, change));
    let ports = workers.each_ref().map(|workers| workers.port);
    let api = server.api.clone();
    api.register(ports[1]).await;

    let begun = Instant::now();
    let kills = Arc::new(Kills::default());
    let killer = tokio::spawn(kill(server, workers, Arc::clone(&kills)));
    let (mut recoveries, mut calls, mut failed) = (0, 0, Vec::new());
    let seeds = cases("RESTATE", 40);
    // How much happens before they end depends on the machine, so more follow until enough has happened.
    let is_one = seeds.end - seeds.start < 40;
    let last = seeds.end + 400;
    let has_all = |recoveries| is_one || recoveries > 0 && kills.are_enough();
    let mut next = seeds.start;
    let mut playing: BTreeMap<String, (Graph, Instant)> = BTreeMap::new();
    let needs_more = |next, recoveries| next < seeds.end || next < last && !has_all(recoveries);
    while needs_more(next, recoveries) || !playing.is_empty() {
        while playing.len() < AT_ONCE && needs_more(next, recoveries) {
            let seed = next;
            next += 1;
            // New conversations go to the workers that were registered last.
            if seed.is_multiple_of(SAME_VERSION) {
                let version = seed / SAME_VERSION % 2;
                api.register(ports[usize::from(version == 1)]).await;
            }
            let graph = Graph { seed };
            let message = json!({ "message": graph.message() });
            let id = api.send(&key(seed), "ask", &message).await;
            playing.insert(id, (graph, Instant::now()));
        }
        recoveries += answer(&api, &effects).await;
        let ids: Vec<String> = playing.keys().cloned().collect();
        for id in ids {
            let Some((status, text)) = api.output(&id).await else {
                let (graph, since) = playing[&id];
                let is_late = since.elapsed() > LONGEST;
                let progress = if is_late {
                    api.progress(&key(graph.seed)).await
                } else {
                    Vec::new()
                };
                assert!(!is_late, "{graph:?} does not end: {progress:#?}");
                continue;
            };
            let (graph, _) = playing.remove(&id).unwrap();
            assert_eq!(status, 200, "{graph:?}: {text}");
            let finished: Finished = serde_json::from_str(&text).unwrap();
            let outcomes: Vec<Outcome> = finished.results.iter().map(Outcome::of).collect();
            calls += outcomes.len();
            let expected = graph.expected(&alone).await;
            if outcomes != expected {
                eprintln!("{graph:?}\n{outcomes:#?}\nexpected: {expected:#?}");
                failed.push(graph.seed);
            }
        }
        sleep(Duration::from_millis(50)).await;
    }
    kills.are_over.store(true, Ordering::Relaxed);
    let (server, _workers) = killer.await.unwrap();
    let seconds = begun.elapsed().as_secs();

    let starts = tools::starts(&effects);
    let (writes, twice) = writes(&starts);
    let many = twice.len();
    let count = next - seeds.start;
    let [worker_kills, server_kills] = kills.counts();
    println!(
        "restate kills: {count} conversations with {calls} calls on three workers of each version in {seconds} s; {worker_kills} kills of a worker, {server_kills} of the server; {} writes started, {many} of them twice; {recoveries} interrupted writes got an answer",
        writes.len()
    );
    assert!(has_all(recoveries), "too few kills or interrupted writes");
    assert!(failed.is_empty(), "RESTATE_CASE: {failed:?}");
    assert!(twice.is_empty(), "started twice: {twice:?}");
    // Everything that a run on one machine has written was written here too, and nothing else.
    assert_eq!(writes, self::writes(&tools::starts(&alone)).0);
    keys_identify_calls(&starts);
    calls_keep_their_order(&starts);
    for seed in seeds.start..next {
        let lines = server.api.get(&key(seed), "record").await.unwrap();
        is_log_of_a_run(&lines, &key(seed));
    }
}

fn key(seed: u64) -> String {
    format!("graph-{seed}")
}

/// Returns the steps that `append` was started for, and those for which it was started more than once.
fn writes(starts: &[Start]) -> (BTreeSet<String>, Vec<String>) {
    let (mut once, mut twice) = (BTreeSet::new(), Vec::new());
    for start in starts.iter().filter(|start| start.tool == "append") {
        if !once.insert(start.step.clone()) {
            twice.push(start.step.clone());
        }
    }
    (once, twice)
}

/// Checks that every start of a call has the same key, and no other call has it.
fn keys_identify_calls(starts: &[Start]) {
    let (mut keys, mut steps) = (BTreeMap::new(), BTreeMap::new());
    for start in starts {
        assert_eq!(keys.entry(&start.step).or_insert(&start.key), &&start.key);
        assert_eq!(steps.entry(&start.key).or_insert(&start.step), &&start.step);
    }
}

/// Checks that calls of the emoji syntax that change something start in the order in which they are written.
fn calls_keep_their_order(starts: &[Start]) {
    let mut last = BTreeMap::new();
    for start in starts.iter().filter(|start| start.tool == "append") {
        let numbers: Vec<u64> = start
            .step
            .split('.')
            .map(|part| part.parse().unwrap())
            .collect();
        let graph = Graph { seed: numbers[0] };
        if graph.is_emoji() {
            let before = last.insert(graph.seed, numbers.clone());
            assert!(
                before.is_none_or(|before| before < numbers),
                "{}",
                start.step
            );
        }
    }
}

/// How often workers and the server were killed.
#[derive(Default)]
struct Kills {
    workers: AtomicUsize,
    server: AtomicUsize,
    are_over: AtomicBool,
}

impl Kills {
    fn counts(&self) -> [usize; 2] {
        [&self.workers, &self.server].map(|count| count.load(Ordering::Relaxed))
    }

    fn are_enough(&self) -> bool {
        let [workers, server] = self.counts();
        workers > 5 && server > 0
    }
}

/// Kills workers and, each eighth time, the server at random moments, and starts them again, until it is over. Returns them.
async fn kill(
    mut server: Server,
    mut versions: [Workers; 2],
    kills: Arc<Kills>,
) -> (Server, [Workers; 2]) {
    let random = &mut Random::new(std::process::id().into());
    while !kills.are_over.load(Ordering::Relaxed) {
        sleep(moment(random, 800)).await;
        if kills.counts().iter().sum::<usize>() % 8 == 3 {
            server.kill();
            kills.server.fetch_add(1, Ordering::Relaxed);
            sleep(moment(random, 300)).await;
            server.start_again();
            server.api.wait().await;
        } else {
            let workers = &mut versions[random.below(2)];
            let number = random.below(workers.count());
            workers.kill(number);
            kills.workers.fetch_add(1, Ordering::Relaxed);
            sleep(moment(random, 300)).await;
            workers.start_again(number);
        }
    }
    (server, versions)
}

fn moment(random: &mut Random, most: usize) -> Duration {
    Duration::from_millis(random.below(most) as u64)
}

/// Answers the questions about interrupted writes as a person would who looks at what the tool has changed.
async fn answer(api: &Api, effects: &Path) -> usize {
    let query = "SELECT service_key, value_utf8 FROM state WHERE key LIKE 'question %'";
    let rows = api.query(query).await;
    if rows.is_empty() {
        return 0;
    }
    let starts = tools::starts(effects);
    let mut answered = 0;
    for row in rows {
        let text = row["value_utf8"].as_str().unwrap_or_default();
        let Ok(question) = serde_json::from_str::<Question>(text) else {
            continue;
        };
        let key = row["service_key"].as_str().unwrap_or_default();
        assert_eq!(question.kind, QuestionKind::Recovery, "{question:?}");
        assert_eq!(question.name, "append");
        let fails = question.arguments["fails"].as_bool() == Some(true);
        let started = starts
            .iter()
            .find(|start| question.arguments["step"] == start.step);
        let number = question.question;
        let answer = match started {
            None => json!({ "question": number, "answer": "run_again" }),
            Some(_) if fails => {
                json!({ "question": number, "answer": "not_done", "reason": "it failed" })
            }
            Some(start) => {
                json!({ "question": number, "answer": "done", "output": start.output })
            }
        };
        // Only a worker that is killed in this moment has a question without its start, and a kill may end this request.
        let sent = api.try_call(key, "answer", &answer).await;
        answered += usize::from(sent.is_ok_and(|(status, _)| status == 200));
    }
    answered
}

/// Checks that a record is the log of a run that has ended, and that a run can be resumed from it.
fn is_log_of_a_run(lines: &str, key: &str) {
    let record = read_log(lines.as_bytes()).unwrap_or_else(|error| panic!("{key}: {error}"));
    assert!(record.torn.is_none(), "{key}");
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("log");
    std::fs::write(&path, lines).unwrap();
    let run = Run::builder(tools::toolbox(directory.path(), Change::None));
    let run = run.dialect(Dialect::auto().escaped());
    let run = run.log(Log::resume(&path).unwrap()).build();
    let run = run.unwrap_or_else(|error| panic!("{key}: {error}"));
    assert!(run.unfinished().is_none(), "{key}");
}
