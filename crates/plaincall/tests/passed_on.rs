//! Results for dependent calls: shared, and limited for each call and for the run.
#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use std::fmt::Write as _;

use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{AllowAll, Command, Policy, Run, Stop, Tool, Toolbox, TurnResults};

/// A tool that returns this many characters of six bytes each in JSON, and one that gets results and reads none of
/// them for a while.
fn tools() -> Toolbox {
    let spec = ToolSpec::new("make").parameter(Parameter::new("count", ParameterKind::Integer));
    let make =
        Command::shell("head -c {count} /dev/zero | tr '\\000' '\\001'").output_limit(1 << 20);
    let wait = Command::new(["sleep", "0.5"]);
    let tools = [
        Tool::command(spec, make).expect("a tool"),
        Tool::command(ToolSpec::new("wait"), wait).expect("a tool"),
    ];
    Toolbox::new(tools).expect("tools")
}

/// Runs `makers` calls that return `bytes` each, and `waiters` calls that depend on all of them.
async fn play(policy: Policy, makers: usize, bytes: usize, waiters: usize) -> TurnResults {
    let mut text = String::new();
    let mut names = Vec::new();
    for number in 0..makers {
        let _ = write!(
            text,
            "!!!GADGET_START:make:m{number}\n!!!ARG:count\n{bytes}\n!!!GADGET_END\n"
        );
        names.push(format!("m{number}"));
    }
    for number in 0..waiters {
        let _ = write!(
            text,
            "!!!GADGET_START:wait:w{number}:{}\n!!!GADGET_END\n",
            names.join(",")
        );
    }
    assert!(text.len() < 8_000);
    let builder = Run::builder(tools()).gate(AllowAll).policy(policy);
    let environment = [("PATH", "/usr/local/bin:/usr/bin:/bin")];
    let builder = builder.environment(environment);
    let builder = builder.directory_in(std::env::temp_dir());
    let mut run = builder.build().expect("a run");
    let mut turn = run.turn();
    turn.feed(&text);
    turn.finish(Stop::Natural).await
}

/// The maximum memory of this process, in KiB.
fn most_memory() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").expect("a system with /proc");
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let number = line.expect("the line").trim().trim_end_matches(" kB");
    number.parse().expect("a number")
}

/// A copy of all results for each call took 1.7 GB here, for a reply of 6 KB.
#[tokio::test]
#[ignore = "it looks at the memory of the whole process"]
async fn results_are_shared() {
    let results = play(Policy::default(), 10, 900_000, 32).await;
    assert!(results.all_ok(), "{results:?}");
    let most = most_memory();
    assert!(most < 400 << 10, "{most} KiB");
}

#[tokio::test]
async fn dependency_outputs_are_limited() {
    let rejected = |results: &TurnResults, makers: usize| -> Vec<usize> {
        let waiters = results.iter().skip(makers).enumerate();
        let rejected = waiters.filter(|(_, result)| result.status == plaincall::Status::Rejected);
        rejected
            .map(|(place, result)| {
                let error = result.error.as_deref().unwrap_or_default();
                assert!(error.contains("dependency_"), "{error}");
                place
            })
            .collect()
    };
    let limits = |dependency_limit, dependency_total| {
        Policy::default()
            .dependency_limit(dependency_limit)
            .dependency_total(dependency_total)
    };
    // Exactly the limit of a call, and one byte more.
    let results = play(limits(3_000, 1 << 20), 3, 1_000, 2).await;
    assert_eq!(rejected(&results, 3), [0; 0], "{results:?}");
    let results = play(limits(2_999, 1 << 20), 3, 1_000, 2).await;
    assert_eq!(rejected(&results, 3), [0, 1], "{results:?}");
    // The limit of all calls together.
    let results = play(limits(3_000, 9_000), 3, 1_000, 5).await;
    assert_eq!(rejected(&results, 3), [3, 4], "{results:?}");
    // Independent calls get nothing.
    let results = play(limits(1, 1), 3, 1_000, 0).await;
    assert!(results.all_ok(), "{results:?}");
    // With the default limits, 18 MB are too much for one call.
    let results = play(Policy::default(), 20, 900_000, 1).await;
    assert_eq!(rejected(&results, 20), [0], "{:?}", results.counts());
}
