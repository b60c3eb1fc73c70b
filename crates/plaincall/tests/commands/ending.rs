//! The end of commands: no process is left.

use std::path::Path;
use std::time::{Duration, Instant};

use plaincall::{Command, Stop};

use crate::commands::scene::{builder, call, check, outcome, tool};

/// Returns whether the process exists and is not a zombie, which its parent may reap late.
fn is_alive(pid: &str) -> bool {
    let Some(pid) = rustix::process::Pid::from_raw(pid.trim().parse().unwrap()) else {
        return false;
    };
    let state = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let is_zombie = state.is_ok_and(|state| state.rsplit(") ").next().unwrap().starts_with('Z'));
    rustix::process::test_kill_process(pid).is_ok() && !is_zombie
}

/// Waits for a file and reads it.
async fn read_when_written(path: &Path) -> String {
    for _ in 0..1000 {
        match std::fs::read_to_string(path) {
            Ok(text) if text.ends_with("end\n") => return text.replace("end\n", ""),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    panic!("{} was never written", path.display());
}

/// A command with a child; both ignore SIGTERM. It writes both process ids to the file `a`.
const STUBBORN: &str = "trap '' TERM; (sleep 1000; :) & echo $$ $! > \"{a}\"; echo end >> \"{a}\"; echo begun; wait; sleep 1000";

/// The same without the trap.
const MEEK: &str = "(sleep 1000; :) & echo $$ $! > \"{a}\"; echo end >> \"{a}\"; echo begun; wait";

async fn check_gone(processes: &str) {
    for process in processes.split_whitespace() {
        for _ in 0..300 {
            if !is_alive(process) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert!(!is_alive(process), "{process} is still alive");
    }
}

#[tokio::test]
async fn nothing_is_left_after_a_timeout() {
    for script in [STUBBORN, MEEK] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("processes");
        let tool = tool(Command::shell(script))
            .timeout(Duration::from_millis(700))
            .grace(Duration::from_millis(300));
        let started = Instant::now();
        let shown = outcome(tool, &[("a", file.to_str().unwrap())]).await;
        assert_eq!(
            shown,
            "error: timed out after 700 ms; the command was stopped | begun\n"
        );
        assert!(
            started.elapsed() < Duration::from_mins(1),
            "{:?}",
            started.elapsed()
        );
        let processes = read_when_written(&file).await;
        assert_eq!(processes.split_whitespace().count(), 2);
        // The group was killed before the result was returned; the kernel may take a moment to remove it.
        check_gone(&processes).await;
    }
}

#[derive(Clone, Copy, Debug)]
enum End {
    Cancel,
    DropFinish,
    DropTurn,
    DropRun,
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_after_the_end_of_a_run() {
    for end in [End::Cancel, End::DropFinish, End::DropTurn, End::DropRun] {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("processes");
        let text = call("x", "", &[("a", file.to_str().unwrap())]) + &call("y", "x", &[]);
        let tool = tool(Command::shell(STUBBORN)).grace(Duration::from_millis(200));
        let mut run = builder(tool).build().unwrap();
        let canceller = run.canceller();
        let mut events = run.events();
        let mut turn = run.turn();
        turn.feed(text);
        let processes = read_when_written(&file).await;
        for process in processes.split_whitespace() {
            assert!(is_alive(process), "{end:?}");
        }
        match end {
            End::Cancel => {
                canceller.cancel();
                let results = turn.finish(Stop::Broken).await;
                let shown: Vec<_> = results.iter().map(|result| result.status.name()).collect();
                assert_eq!(shown, ["cancelled", "cancelled"]);
                assert_eq!(results[0].output.as_deref(), Some("begun\n"));
            }
            End::DropFinish => {
                let waited =
                    tokio::time::timeout(Duration::from_millis(50), turn.finish(Stop::Natural));
                assert!(waited.await.is_err());
            }
            End::DropTurn => drop(turn),
            End::DropRun => {
                drop(turn);
                drop(run);
            }
        }
        check_gone(&processes).await;
        // Every call still ends, and so does the turn.
        let mut ends = 0;
        while let Ok(Some(event)) =
            tokio::time::timeout(Duration::from_secs(5), events.next()).await
        {
            match event {
                plaincall::RunEvent::Result(result) => {
                    assert_eq!(result.status.name(), "cancelled");
                }
                plaincall::RunEvent::TurnEnd(turn) => {
                    assert_eq!(turn.counts.cancelled, 2, "{end:?}");
                    ends += 1;
                    break;
                }
                _ => {}
            }
        }
        assert_eq!(ends, 1, "{end:?}");
    }
}

/// Returns the processes whose environment has this call id.
fn working_for(id: &str) -> Vec<String> {
    let variable = format!("PLAINCALL_ID={id}");
    let processes = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        let name = entry.ok()?.file_name().into_string().ok()?;
        let environment = std::fs::read(format!("/proc/{name}/environ")).ok()?;
        let mut variables = environment.split(|&byte| byte == 0);
        variables
            .any(|found| found == variable.as_bytes())
            .then_some(name)
    });
    processes.collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_left_whenever_a_turn_is_dropped() {
    let mut has_seen_any = false;
    for moment in 0..60 {
        let id = format!("dropped-{}-{moment}", std::process::id());
        let tool = tool(Command::shell("sleep 1000 & sleep 1000 | cat")).grace(Duration::ZERO);
        let mut run = builder(tool).build().unwrap();
        let mut turn = run.turn();
        turn.feed(call(&id, "", &[("a", &"x".repeat(100_000))]));
        tokio::time::sleep(Duration::from_micros(moment * 250)).await;
        has_seen_any |= !working_for(&id).is_empty();
        if moment % 2 == 0 {
            drop(turn);
        } else {
            turn.cancel();
            let results = turn.finish(Stop::Natural).await;
            assert_eq!(results[0].status.name(), "cancelled", "{:?}", results[0]);
            assert_eq!(working_for(&id), [""; 0]);
        }
        run.close().await.unwrap();
        assert_eq!(working_for(&id), [""; 0], "{moment}");
    }
    assert!(has_seen_any);
}

#[test]
fn nothing_is_left_after_the_runtime_shuts_down() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .unwrap();
    let processes = runtime.block_on(async {
        let mut run = builder(tool(Command::shell(STUBBORN))).build().unwrap();
        let mut turn = run.turn();
        turn.feed(call("x", "", &[("a", file.to_str().unwrap())]));
        read_when_written(&file).await
    });
    runtime.shutdown_timeout(Duration::from_secs(5));
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(check_gone(&processes));
}

#[tokio::test]
async fn background_processes_end_with_their_command() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let argument = [("a", file.to_str().unwrap())];
    let leave =
        |how: &str| format!("{how} & echo $! > \"{{a}}\"; echo end >> \"{{a}}\"; echo done");
    let started = Instant::now();
    // It holds the pipe open.
    let done =
        "ok: done\n[processes that the command left in the background were ended when it exited]";
    check(Command::shell(leave("sleep 1000")), &argument, done).await;
    check_gone(&read_when_written(&file).await).await;
    check(
        Command::shell(leave("sleep 1000 >/dev/null 2>&1")),
        &argument,
        done,
    )
    .await;
    check_gone(&read_when_written(&file).await).await;
    // Output that is still being written when the command exits is read.
    check(
        Command::shell("(sleep 0.05; echo late) & echo early"),
        &[],
        "ok: early\nlate\n",
    )
    .await;
    assert!(
        started.elapsed() < Duration::from_mins(1),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn the_whole_group_has_the_grace_period() {
    // The shell exits immediately, its child later.
    let child = "trap 'sleep 0.2; echo tidied up; exit' TERM; sleep 1000 & echo begun; wait";
    let command = Command::shell(format!("sh -c \"{child}\" & wait"));
    let tool = tool(command)
        .timeout(Duration::from_millis(500))
        .grace(Duration::from_secs(1000));
    let started = Instant::now();
    assert_eq!(
        outcome(tool, &[]).await,
        "error: timed out after 500 ms; the command was stopped | begun\ntidied up\n"
    );
    assert!(started.elapsed() < Duration::from_mins(1));
}

#[tokio::test]
async fn a_grace_period_may_be_endless() {
    let tool = tool(Command::shell(
        "trap 'echo tidied up; exit' TERM; sleep 1000 & wait",
    ))
    .timeout(Duration::from_millis(500))
    .grace(Duration::MAX);
    let shown = tokio::time::timeout(Duration::from_mins(1), outcome(tool, &[])).await;
    assert_eq!(
        shown.unwrap(),
        "error: timed out after 500 ms; the command was stopped | tidied up\n"
    );
}

#[tokio::test]
async fn a_process_that_left_the_group_delays_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("processes");
    let started = Instant::now();
    let script = "setsid sh -c 'echo $$ > \"$1\"; echo end >> \"$1\"; exec sleep 1000' sh \"{a}\" & echo done; while ! grep -q end \"{a}\" 2>/dev/null; do sleep 0.01; done";
    check(
        Command::shell(script),
        &[("a", file.to_str().unwrap())],
        "ok: done\n",
    )
    .await;
    assert!(started.elapsed() < Duration::from_mins(1));
    let process = read_when_written(&file).await;
    let process = rustix::process::Pid::from_raw(process.trim().parse().unwrap()).unwrap();
    rustix::process::kill_process(process, rustix::process::Signal::KILL).unwrap();
}

#[tokio::test]
async fn a_given_directory_stays() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("new/one");
    let tool = tool(Command::shell("echo {a} > file").directory("{directory:run}"));
    let mut run = builder(tool).directory(&directory).build().unwrap();
    let mut turn = run.turn();
    turn.feed(call("x", "", &[("a", "1")]));
    assert!(turn.finish(Stop::Natural).await.all_ok());
    run.close().await.unwrap();
    assert_eq!(
        std::fs::read_to_string(directory.join("file")).unwrap(),
        "1\n"
    );
}

#[tokio::test]
async fn the_run_directory_is_shared_and_removed() {
    let script = "test -e file && cat file; echo \"{a}\" >> {directory:run}/file";
    let tool = tool(Command::shell(script).directory("{directory:run}"));
    let mut run = builder(tool).build().unwrap();
    let directory = run.directory().unwrap().to_owned();
    let mut turn = run.turn();
    turn.feed(call("x", "", &[("a", "1")]) + &call("y", "x", &[("a", "2")]));
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results[1].output.as_deref(), Some("1\n"));
    let removed = run.close().await.unwrap().unwrap();
    assert_eq!(removed.directory, directory);
    assert_eq!(removed.names, ["file"]);
    assert!(!directory.exists());
}
