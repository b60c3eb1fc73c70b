//! A crash while a call of a dropped turn is ending, and the next turn has begun.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plaincall::{
    AllowAll, Decision, Effect, Gate, Log, Policy, Recovery, Request, Run, RunEvent, Status, Stop,
    Tool, ToolResult, Toolbox,
    gate::{GateFuture, RecoveryFuture},
    log::read_log,
    policy::Order,
};
use tempfile::TempDir;
use tokio::sync::Notify;

/// Allows every call, and reports that interrupted calls run again.
struct Always;

impl Gate for Always {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        Box::pin(async { Ok(Decision::Allow) })
    }

    fn recover<'a>(&'a self, _: &'a Request) -> RecoveryFuture<'a> {
        Box::pin(async { Ok(Recovery::RunAgain) })
    }
}

/// Its calls end only when they are cancelled, and take time to stop.
fn toolbox(effect: Effect) -> Toolbox {
    reporting_toolbox(effect, &Arc::default())
}

/// The same. Each call reports that it runs.
fn reporting_toolbox(effect: Effect, running: &Arc<Notify>) -> Toolbox {
    let running = Arc::clone(running);
    let pending = move |(): (), _| {
        running.notify_one();
        std::future::pending::<ToolResult>()
    };
    let stubborn = Tool::new("stubborn", pending)
        .effect(effect)
        .grace(Duration::from_hours(1));
    Toolbox::new([stubborn]).unwrap()
}

/// Returns the log of a run that crashed while a call of a dropped turn was ending and the next turn had begun.
async fn crashed(effect: Effect) -> (TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let running = Arc::default();
    let builder = Run::builder(reporting_toolbox(effect, &running)).gate(Always);
    let mut run = builder.log(Log::create(&first).unwrap()).build().unwrap();
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:stubborn:a\n!!!GADGET_END\n");
    running.notified().await;
    drop(turn);
    let turn = run.turn();
    while fs::read_to_string(&first)
        .unwrap()
        .matches(r#""event":"turn""#)
        .count()
        < 2
    {
        turn.caught_up().await;
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    fs::copy(&first, &second).unwrap();
    (folder, second)
}

/// Returns the results in a log.
fn ends(path: &Path) -> Vec<Status> {
    let record = read_log(&fs::read(path).unwrap()).unwrap();
    let ends = record.events.iter().filter_map(|event| match event {
        RunEvent::Result(result) => Some(result.status),
        _ => None,
    });
    ends.collect()
}

/// `is_resumed`: whether the turn of the log is resumed, or a new turn starts.
async fn check(effect: Effect, is_resumed: bool) {
    let (_folder, log) = crashed(effect).await;
    let builder = Run::builder(toolbox(effect)).gate(Always);
    let mut run = builder.log(Log::resume(&log).unwrap()).build().unwrap();
    let turn = if is_resumed {
        run.resume_turn()
    } else {
        run.turn()
    };
    turn.finish(Stop::Natural).await;
    run.close().await.unwrap();
    assert_eq!(ends(&log), [Status::Cancelled], "{effect:?} {is_resumed}");
}

/// A gate that never answers about an interrupted call.
struct Silent;

impl Gate for Silent {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        Box::pin(async { Ok(Decision::Allow) })
    }

    fn recover<'a>(&'a self, _: &'a Request) -> RecoveryFuture<'a> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn an_open_question_is_abandoned_when_the_conversation_continues() {
    let (_folder, log) = crashed(Effect::Write).await;
    let builder = Run::builder(toolbox(Effect::Write)).gate(Silent);
    let mut run = builder.log(Log::resume(&log).unwrap()).build().unwrap();
    run.resume_turn().finish(Stop::Natural).await;
    assert_eq!(ends(&log), []);
    run.turn().finish(Stop::Natural).await;
    run.close().await.unwrap();
    assert_eq!(ends(&log), [Status::Unknown]);
}

#[tokio::test]
async fn a_cancelled_call_ends_and_does_not_run_again() {
    check(Effect::Idempotent, true).await;
    check(Effect::Write, true).await;
    check(Effect::Idempotent, false).await;
}

/// In sequential order, the calls of the next turn continue when the call has ended. Then its status is final, and the log
/// can be resumed repeatedly.
#[tokio::test(start_paused = true)]
async fn calls_of_the_next_turn_continue_after_it() {
    for next in [
        "🛠️[look]🛠️[/end]\n",
        "!!!GADGET_START:look\n!!!GADGET_END\n",
    ] {
        for order in [Order::Sequential, Order::StopOnError] {
            continues_after(next, order).await;
        }
    }
}

async fn continues_after(next: &str, emoji_order: Order) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let tools = || {
        let look = Tool::new("look", |(): (), _| async { Ok(String::new()) }).effect(Effect::Read);
        Toolbox::new(toolbox(Effect::Write).iter().cloned().chain([look])).unwrap()
    };
    let builder = |log| {
        Run::builder(tools())
            .gate(AllowAll)
            .policy(Policy::default().emoji_order(emoji_order))
            .log(log)
    };
    let mut run = builder(Log::create(&path).unwrap()).build().unwrap();
    let mut turn = run.turn();
    turn.feed("🛠️[stubborn]🛠️[/end]\n");
    tokio::time::sleep(Duration::from_millis(1)).await;
    drop(turn);
    let mut turn = run.turn();
    turn.feed(next);
    turn.caught_up().await;
    drop(turn);
    run.close().await.unwrap();

    // The crash: before the next turn was dropped too.
    let log = fs::read_to_string(&path).unwrap();
    let (dropped, _) = log.match_indices(r#""event":"cancel""#).nth(1).unwrap();
    let end = log[..dropped].rfind('\n').unwrap() + 1;
    fs::write(&path, &log[..end]).unwrap();
    for time in 0..3 {
        let built = builder(Log::resume(&path).unwrap()).build();
        let mut run = built.unwrap_or_else(|error| panic!("{next}, time {time}: {error}"));
        if run.unfinished().is_some() {
            assert!(run.resume_turn().finish(Stop::Natural).await.all_ok());
        }
        run.close().await.unwrap();
    }
}
