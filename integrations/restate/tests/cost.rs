//! The cost of a call in addition to its tool: in process, with a log, and on Restate.

use std::fmt::Write as _;
use std::path::Path;
use std::time::{Duration, Instant};

use plaincall::{AllowAll, Dialect, Log, Run, Status, Stop};
use plaincall_restate::Finished;
use serde_json::json;
use tokio::time::sleep;

use crate::server::{Server, free_port};
use crate::tools::{Change, toolbox};
use crate::workers::Workers;

/// The numbers of calls in a reply.
const COUNTS: [usize; 4] = [10, 100, 1_000, 10_000];
/// The time limit for one reply.
const LONGEST: Duration = Duration::from_mins(10);

/// Returns a reply with calls of a tool that does nothing: independent, or each dependent on the one before.
fn reply(count: usize, is_chain: bool) -> String {
    let mut reply = String::new();
    for number in 0..count {
        let after = number.checked_sub(1).filter(|_| is_chain);
        let after = after.map_or_else(String::new, |before| format!("n{before}"));
        let _ = write!(
            reply,
            "!!!GADGET_START:nothing:n{number}:{after}\n!!!GADGET_END\n"
        );
    }
    reply
}

async fn alone(reply: &str, directory: &Path, has_log: bool) -> Duration {
    let mut run = Run::builder(toolbox(directory, Change::None)).gate(AllowAll);
    run = run.dialect(Dialect::auto().escaped());
    if has_log {
        run = run.log(Log::create(directory.join("log")).unwrap());
    }
    let begun = Instant::now();
    let mut run = run.build().unwrap();
    let mut turn = run.turn();
    turn.feed(reply);
    let results = turn.finish(Stop::Natural).await;
    assert!(results.all_ok());
    let took = begun.elapsed();
    drop(run);
    let _ = std::fs::remove_file(directory.join("log"));
    took
}

async fn on_restate(reply: &str, server: &Server, key: &str) -> Duration {
    let begun = Instant::now();
    let id = server
        .api
        .send(key, "run", &json!({ "reply": reply }))
        .await;
    loop {
        if let Some((status, text)) = server.api.output(&id).await {
            assert_eq!(status, 200, "{text}");
            let took = begun.elapsed();
            let finished: Finished = serde_json::from_str(&text).unwrap();
            assert!(finished.results.iter().all(|one| one.status == Status::Ok));
            return took;
        }
        assert!(begun.elapsed() < LONGEST, "{key} does not end");
        sleep(Duration::from_millis(1)).await;
    }
}

fn print(name: &str, count: usize, is_chain: bool, took: Duration) {
    let shape = if is_chain { "chain" } else { "independent" };
    let each = took.as_secs_f64() * 1e6 / f64::from(u32::try_from(count).unwrap());
    println!("cost: {name}, {count} calls, {shape}: {each:.0} µs per call");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement: cargo xtask restate --cost"]
async fn of_a_call() {
    for is_chain in [false, true] {
        for count in COUNTS {
            let (directory, reply) = (tempfile::tempdir().unwrap(), reply(count, is_chain));
            for (name, has_log) in [("in process", false), ("with a log", true)] {
                // The first run also warms up.
                alone(&reply, directory.path(), has_log).await;
                let took = alone(&reply, directory.path(), has_log).await;
                print(name, count, is_chain, took);
            }
        }
    }
    for workers in [1, 3] {
        let directory = tempfile::tempdir().unwrap();
        let server = Server::start(directory.path()).await;
        let workers = Workers::start(workers, free_port(), directory.path(), Change::None);
        server.api.register(workers.port).await;
        on_restate(&reply(100, false), &server, "warm-up").await;
        for is_chain in [false, true] {
            for count in COUNTS {
                let key = format!("talk-{count}-{is_chain}");
                let took = on_restate(&reply(count, is_chain), &server, &key).await;
                let name = format!("on Restate, {} worker(s)", workers.count());
                print(&name, count, is_chain, took);
            }
        }
    }
}
