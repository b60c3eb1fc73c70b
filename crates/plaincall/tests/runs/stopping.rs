//! Cancelling, dropping, closing: nothing is left.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plaincall::{Context, Effect, Run, RunEvent, Stop, Tool, Toolbox};
use tokio::time::{sleep, timeout};

use crate::runs::scene::{builder, errors, play, shown, sleeper, written};

#[tokio::test(start_paused = true)]
async fn cancelling() {
    let mut run = builder()
        .policy(plaincall::Policy::default().concurrent(1))
        .build()
        .unwrap();
    let canceller = run.canceller();
    let mut turn = run.turn();
    turn.feed(written("a=sleep,100 b=sleep,10 c=sleep,10<a", false).concat());
    sleep(Duration::from_millis(30)).await;
    canceller.cancel();
    sleep(Duration::from_millis(10)).await;
    turn.feed(written("d=sleep,10", false).concat());
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(
        shown(&results),
        "a cancelled 0-30, b cancelled -30, c cancelled -30, d cancelled -40"
    );
    assert_eq!(
        errors(&results)[0],
        "the run was cancelled while the call was running"
    );
    assert_eq!(
        errors(&results)[1],
        "the run was cancelled before the call was started"
    );
    // The next turn is not affected, and a call that depends on a cancelled one is skipped.
    let results = play(&mut run, &written("e=sleep,10 f=sleep,10<a", false), 0).await;
    assert_eq!(shown(&results), "e ok 40-50, f skipped -40");
}

#[tokio::test(start_paused = true)]
async fn cancelling_before_the_first_call() {
    let mut run = builder().build().unwrap();
    let turn = run.turn();
    turn.cancel();
    assert!(turn.finish(Stop::Natural).await.is_empty());
    for is_early in [true, false] {
        let canceller = run.canceller();
        if !is_early {
            canceller.cancel();
        }
        let mut turn = run.turn();
        if is_early {
            canceller.cancel();
        }
        turn.feed(written("a=sleep,0", false).concat());
        let status = turn.finish(Stop::Natural).await[0].status;
        assert_eq!(status.name(), if is_early { "cancelled" } else { "ok" });
    }
}

#[tokio::test(start_paused = true)]
async fn closing_waits_for_the_end() {
    let mut run = builder().build().unwrap();
    let mut turn = run.turn();
    turn.feed(written("a=sleep,1000 b=sleep,10", false).concat());
    assert!(
        timeout(Duration::from_millis(5), turn.finish(Stop::Natural))
            .await
            .is_err()
    );
    let canceller = run.canceller();
    run.close().await.unwrap();
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
    canceller.cancel();
}

/// Counts its futures that exist.
fn counted(name: &str, alive: &Arc<AtomicU32>) -> Tool {
    struct Alive(Arc<AtomicU32>);
    impl Drop for Alive {
        fn drop(&mut self) {
            self.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
    let alive = Arc::clone(alive);
    Tool::new(name, move |(), _| {
        alive.fetch_add(1, Ordering::SeqCst);
        let alive = Alive(Arc::clone(&alive));
        async move {
            let _alive = alive;
            std::future::pending().await
        }
    })
    .effect(Effect::Read)
}

#[tokio::test(start_paused = true)]
async fn dropping_ends_everything() {
    let alive = Arc::new(AtomicU32::new(0));
    let running = || alive.load(Ordering::SeqCst);
    let pause = || sleep(Duration::from_millis(1));
    let mut run = Run::new(Toolbox::new([counted("wait", &alive)]).unwrap()).unwrap();
    let mut events = run.events();
    let text = "!!!GADGET_START:wait\n!!!GADGET_END\n".repeat(3);
    let mut turn = run.turn();
    turn.feed(&text);
    pause().await;
    assert_eq!(running(), 3);
    drop(turn);
    pause().await;
    assert_eq!(running(), 0);
    let mut turn = run.turn();
    turn.feed(&text);
    assert!(
        timeout(Duration::from_millis(5), turn.finish(Stop::Natural))
            .await
            .is_err()
    );
    pause().await;
    assert_eq!(running(), 0);
    let mut turn = run.turn();
    turn.feed(&text);
    pause().await;
    assert_eq!(running(), 3);
    drop(turn);
    drop(run);
    // The stream of events ends when the last call has ended.
    while events.next().await.is_some() {}
    assert_eq!(running(), 0);
    assert_eq!(
        tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks(),
        0
    );
}

#[tokio::test(start_paused = true)]
async fn a_finish_that_is_dropped_at_any_poll_leaves_nothing() {
    let alive = Arc::new(AtomicU32::new(0));
    for polls in 0..50 {
        let tools = [
            counted("wait", &alive),
            sleeper("sleep", |_, _| Ok(String::new())),
        ];
        let mut run = Run::new(Toolbox::new(tools).unwrap()).unwrap();
        let mut turn = run.turn();
        turn.feed("!!!GADGET_START:wait\n!!!GADGET_END\n");
        turn.feed(written("a=sleep,10 b=sleep,10<a c=sleep,10<b", false).concat());
        let mut finish = Box::pin(turn.finish(Stop::Natural));
        for _ in 0..polls {
            // Between the polls, other tasks advance by a few milliseconds.
            assert!(timeout(Duration::ZERO, &mut finish).await.is_err());
            sleep(Duration::from_millis(1)).await;
        }
        drop(finish);
        let again = play(&mut run, &written("d=sleep,1<a", false), 0).await;
        let status = again[0].status.name();
        assert_eq!(
            status,
            if polls >= 10 { "ok" } else { "skipped" },
            "{polls}"
        );
        run.close().await.unwrap();
        assert_eq!(alive.load(Ordering::SeqCst), 0, "{polls}");
        assert_eq!(
            tokio::runtime::Handle::current()
                .metrics()
                .num_alive_tasks(),
            0,
            "{polls}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_turn_that_is_forgotten_is_over_when_the_next_begins() {
    let mut run = builder().build().unwrap();
    let mut events = run.events();
    let mut turn = run.turn();
    turn.feed(written("a=sleep,10", false).concat() + "!!!GADGET_START:sleep:b\n!!!ARG:ms\n5");
    std::mem::forget(turn);
    sleep(Duration::from_millis(2)).await;
    let results = play(&mut run, &written("a=sleep,10 b=sleep,5", false), 0).await;
    assert_eq!(shown(&results), "a ok 2-12, b ok 2-7");
    drop(run);
    let mut ends = Vec::new();
    while let Some(event) = events.next().await {
        if let RunEvent::TurnEnd(end) = event {
            ends.push((end.counts.cancelled, end.counts.ok));
        }
    }
    assert_eq!(ends, [(2, 0), (0, 2)]);
}

#[tokio::test(start_paused = true)]
async fn a_tool_observes_its_cancellation() {
    let tool = |grace: u64| {
        Tool::new("stop", |(), context: Context| async move {
            context.cancellation().cancelled().await;
            sleep(Duration::from_millis(20)).await;
            Ok("tidied up".to_owned())
        })
        .effect(Effect::Read)
        .timeout(Duration::from_millis(100))
        .grace(Duration::from_millis(grace))
    };
    let check = async |grace: u64, cancel_at: Option<u64>, expected: &str, output: Option<&str>| {
        let mut run = Run::new(Toolbox::new([tool(grace)]).unwrap()).unwrap();
        let mut turn = run.turn();
        turn.feed("!!!GADGET_START:stop:a\n!!!GADGET_END\n");
        if let Some(at) = cancel_at {
            sleep(Duration::from_millis(at)).await;
            turn.cancel();
        }
        let results = turn.finish(Stop::Natural).await;
        assert_eq!(
            (&*shown(&results), results[0].output.as_deref()),
            (expected, output)
        );
    };
    check(0, None, "a error 0-100", None).await;
    check(50, None, "a error 0-120", Some("tidied up")).await;
    check(10, None, "a error 0-110", None).await;
    check(0, Some(30), "a cancelled 0-30", None).await;
    check(50, Some(30), "a ok 0-50", Some("tidied up")).await;
}

/// A tool that writes this into the run's directory.
fn leaving(leave: fn(&Path)) -> Run {
    let tool = Tool::new("leave", move |(), context: Context| async move {
        leave(context.directory().unwrap());
        Ok(String::new())
    });
    Run::builder(Toolbox::new([tool.effect(Effect::Read)]).unwrap())
        .directory_in(std::env::temp_dir())
        .build()
        .unwrap()
}

async fn after_its_call(mut run: Run) -> Run {
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:leave\n!!!GADGET_END\n");
    let results = turn.finish(Stop::Natural).await;
    assert!(results.all_ok(), "{results:?}");
    run
}

#[tokio::test]
async fn closing_removes_the_directory_and_others_continue() {
    let run = leaving(|directory| {
        for number in 0..2000 {
            std::fs::write(directory.join(number.to_string()), "x").unwrap();
        }
    });
    let run = after_its_call(run).await;
    let turns = Arc::new(AtomicU32::new(0));
    let others = tokio::spawn({
        let turns = Arc::clone(&turns);
        async move {
            loop {
                turns.fetch_add(1, Ordering::SeqCst);
                tokio::task::yield_now().await;
            }
        }
    });
    let removed = run.close().await.unwrap().unwrap();
    assert_eq!(removed.names.len(), 2000);
    assert!(!removed.directory.exists());
    assert_eq!(
        removed.to_string(),
        "the run's scratch directory was removed, with `0`, `1`, `10`, `100`, `1000` and 1995 more"
    );
    others.abort();
    // Removing it on this thread would delay the end of the run's task.
    let turns = turns.load(Ordering::SeqCst);
    assert!(turns > 20, "{turns}");
}

#[tokio::test]
async fn closing_reports_removed_files() {
    let run = leaving(|directory| {
        std::fs::remove_dir(directory).unwrap();
        std::fs::write(directory, "no directory any more").unwrap();
    });
    let error = after_its_call(run).await.close().await.unwrap_err();
    std::fs::remove_file(&error.directory).unwrap();
    let begin = format!(
        "the run's scratch directory {} could not be removed: ",
        error.directory.display()
    );
    assert!(error.to_string().starts_with(&begin), "{error}");
    // A missing directory is the desired result.
    let run = leaving(|directory| std::fs::remove_dir(directory).unwrap());
    let removed = after_its_call(run).await.close().await.unwrap();
    assert_eq!(removed, None);
}

/// Dropping a run removes no files, because it could not report them.
#[tokio::test]
async fn dropping_removes_no_files() {
    for (leave, is_kept) in [
        (
            (|directory| std::fs::write(directory.join("file"), "x").unwrap()) as fn(&Path),
            true,
        ),
        (|_| {}, false),
    ] {
        let run = after_its_call(leaving(leave)).await;
        let directory = run.directory().unwrap().to_owned();
        drop(run);
        // The driver of the run holds it until it has ended.
        tokio::time::sleep(Duration::from_millis(100)).await;
        assert_eq!(directory.exists(), is_kept);
        let _ = std::fs::remove_dir_all(&directory);
    }
}
