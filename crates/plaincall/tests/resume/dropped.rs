//! A crash while a call of a turn that was dropped still ends, and the next turn has begun.

use std::fs;
use std::time::Duration;

use plaincall::{
    AllowAll, Decision, Effect, Gate, GateFuture, Log, Order, Request, Run, RunEvent, Settlement,
    SettlementFuture, Status, Stop, Tool, ToolResult, Toolbox, read_log,
};

/// Lets all run, also again.
struct Always;

impl Gate for Always {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        Box::pin(async { Ok(Decision::Allow) })
    }

    fn settle<'a>(&'a self, _: &'a Request) -> SettlementFuture<'a> {
        Box::pin(async { Ok(Settlement::RunAgain) })
    }
}

/// Its calls do not end by themselves, and take their time to stop.
fn toolbox(effect: Effect) -> Toolbox {
    let stubborn = Tool::new("stubborn", |(): (), _| std::future::pending::<ToolResult>())
        .effect(effect)
        .grace(Duration::from_hours(1));
    Toolbox::new([stubborn]).unwrap()
}

/// `goes_on`: with the turn of the log, instead of a new one.
async fn check(effect: Effect, goes_on: bool) {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("first"), folder.path().join("second"));
    let builder = |log| Run::builder(toolbox(effect)).gate(Always).log(log);

    let mut run = builder(Log::create(&first).unwrap()).build().unwrap();
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:stubborn:a\n!!!GADGET_END\n");
    loop {
        turn.caught_up().await;
        let log = fs::read_to_string(&first).unwrap();
        if log.contains(r#""event":"start""#) {
            break;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
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

    let mut run = builder(Log::resume(&second).unwrap()).build().unwrap();
    let turn = if goes_on { run.go_on() } else { run.turn() };
    turn.finish(Stop::Natural).await;
    run.close().await.unwrap();
    let record = read_log(&fs::read(&second).unwrap()).unwrap();
    let ends: Vec<Status> = record
        .events
        .iter()
        .filter_map(|event| match event {
            RunEvent::Result(result) => Some(result.status),
            _ => None,
        })
        .collect();
    assert_eq!(ends, [Status::Cancelled], "{effect:?} {goes_on}");
}

#[tokio::test]
async fn a_call_that_was_called_off_ends_and_is_not_run_again() {
    check(Effect::Idempotent, true).await;
    check(Effect::Write, true).await;
    check(Effect::Idempotent, false).await;
}

/// In order of writing the calls of the next turn go on when the call has ended; what it ended as is settled then, and
/// the log can be taken up again and again.
#[tokio::test(start_paused = true)]
async fn calls_of_the_next_turn_go_on_behind_it() {
    for next in [
        "🛠️[look]🛠️[/end]\n",
        "!!!GADGET_START:look\n!!!GADGET_END\n",
    ] {
        for order in [false, true] {
            goes_on_behind(next, order).await;
        }
    }
}

async fn goes_on_behind(next: &str, stop_on_error: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let tools = || {
        let look = Tool::new("look", |(): (), _| async { Ok(String::new()) }).effect(Effect::Read);
        Toolbox::new(toolbox(Effect::Write).iter().cloned().chain([look])).unwrap()
    };
    let builder = |log| {
        Run::builder(tools())
            .gate(AllowAll)
            .emoji_order(Order::Sequential { stop_on_error })
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

    // The crash: before the next turn was dropped as well.
    let log = fs::read_to_string(&path).unwrap();
    let (dropped, _) = log.match_indices(r#""event":"cancel""#).nth(1).unwrap();
    let end = log[..dropped].rfind('\n').unwrap() + 1;
    fs::write(&path, &log[..end]).unwrap();
    for time in 0..3 {
        let built = builder(Log::resume(&path).unwrap()).build();
        let mut run = built.unwrap_or_else(|error| panic!("{next}, time {time}: {error}"));
        if run.unfinished().is_some() {
            assert!(run.go_on().finish(Stop::Natural).await.all_ok());
        }
        run.close().await.unwrap();
    }
}
