//! Whole conversations, and each future in them.
//!
//! This is one test, because it counts the open files and processes of the process.

use std::path::Path;
use std::time::Duration;

use plaincall::gate::GateFuture;
use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{
    Command, Decision, Effect, Gate, Log, Request, Run, RunBuilder, Stop, Tool, Toolbox,
};
use tokio::time::sleep;

use crate::dropped::left::Left;
use crate::dropped::polls::{poll_at_most, poll_every_turn};

/// Takes a moment to decide.
struct Slow;

impl Gate for Slow {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        Box::pin(async {
            tokio::task::yield_now().await;
            sleep(Duration::from_millis(1)).await;
            Ok(Decision::Allow)
        })
    }
}

fn builder(folder: &Path) -> RunBuilder {
    let nap = Tool::new("nap", |(): (), _| async {
        sleep(Duration::from_millis(1)).await;
        Ok("slept".to_owned())
    });
    let spec = ToolSpec::new("cat").parameter(Parameter::new("text", ParameterKind::String));
    let cat = Command::shell("cat; (sleep 1000; :) >/dev/null 2>&1 &");
    let cat = Tool::command(spec, cat).unwrap().grace(Duration::ZERO);
    let log = folder.join("log");
    let _ = std::fs::remove_file(&log);
    Run::builder(Toolbox::new([nap.effect(Effect::Write), cat]).unwrap())
        .gate(Slow)
        .directory_in(folder)
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")])
        .policy(plaincall::Policy::default().concurrent(2))
        .log(Log::create(log).unwrap())
}

const REPLY: [&str; 3] = [
    "!!!GADGET_START:nap:a\n!!!GADGET_END\n!!!GADGET_START:cat:b:a\n!!!ARG:text\nx\n!!!GADGET_END\n",
    "!!!GADGET_START:nap:c:b\n!!!GADGET_END\n!!!GADGET_START:nap:d:missing\n!!!GADGET_END\n",
    "!!!GADGET_START:cat:e\n!!!ARG:text\ny",
];

/// Runs still work after a future was dropped, and all slots are free.
async fn check_next_turn(run: &mut Run, at: &str) {
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:nap\n!!!GADGET_END\n".repeat(5));
    let results = turn.finish(Stop::Natural).await;
    assert!(results.all_ok() && results.len() == 5, "{at}: {results:?}");
}

async fn conversation(folder: &Path) {
    let mut run = builder(folder).build().unwrap();
    let mut events = run.events();
    for _ in 0..2 {
        let mut turn = run.turn();
        for piece in REPLY {
            turn.feed(piece);
            turn.caught_up().await;
        }
        turn.finish(Stop::Natural).await;
        for _ in 0..10 {
            events.next().await.unwrap();
        }
    }
    run.close().await.unwrap();
    while events.next().await.is_some() {}
}

async fn whole(folder: &Path, polls: usize) -> bool {
    poll_at_most(Box::pin(conversation(folder)), polls)
        .await
        .is_some()
}

async fn finish(folder: &Path, polls: usize) -> bool {
    let mut run = builder(folder).build().unwrap();
    let mut turn = run.turn();
    turn.feed(REPLY.concat());
    let done = poll_at_most(turn.finish(Stop::Natural), polls).await;
    check_next_turn(&mut run, &format!("finish, {polls}")).await;
    run.close().await.unwrap();
    done.is_some()
}

async fn caught_up(folder: &Path, polls: usize) -> bool {
    let mut run = builder(folder).build().unwrap();
    let mut turn = run.turn();
    turn.feed(REPLY.concat());
    let done = poll_at_most(turn.caught_up(), polls).await;
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results.len(), 5, "caught_up, {polls}");
    check_next_turn(&mut run, &format!("caught_up, {polls}")).await;
    run.close().await.unwrap();
    done.is_some()
}

async fn next(folder: &Path, polls: usize) -> bool {
    let mut run = builder(folder).build().unwrap();
    let mut events = run.events();
    let mut turn = run.turn();
    turn.feed(REPLY.concat());
    let results = turn.finish(Stop::Natural).await;
    run.close().await.unwrap();
    // A new future for each event, each dropped after this many polls: no event is lost.
    let mut ends = 0;
    let mut is_done = true;
    loop {
        let polled = poll_at_most(events.next(), polls).await;
        is_done &= polled.is_some();
        let event = match polled {
            Some(event) => event,
            None => events.next().await,
        };
        match event {
            Some(plaincall::RunEvent::Result(_)) => ends += 1,
            Some(_) => {}
            None => break,
        }
    }
    assert_eq!(ends, results.len(), "next, {polls}");
    is_done
}

async fn close(folder: &Path, polls: usize) -> bool {
    let mut run = builder(folder).build().unwrap();
    let mut turn = run.turn();
    turn.feed(REPLY.concat());
    turn.caught_up().await;
    // The turn is dropped while its calls run.
    drop(turn);
    poll_at_most(run.close(), polls).await.is_some()
}

/// A command that ignores signals, with children and grandchildren: no zombie, file or directory of it is left.
async fn stubborn(folder: &Path, is_cancelled: bool) {
    let script = "trap '' TERM; (trap '' TERM; sleep 1000; sleep 1000) & (sleep 1000 & sleep 1000) & touch \"$PLAINCALL_RUN_DIRECTORY/begun\"; wait; sleep 1000";
    let tool = Tool::command(ToolSpec::new("stay"), Command::shell(script)).unwrap();
    let timeout = if is_cancelled { 60_000 } else { 300 };
    let tool = tool
        .timeout(Duration::from_millis(timeout))
        .grace(Duration::from_millis(50));
    let builder = Run::builder(Toolbox::new([tool]).unwrap())
        .gate(Slow)
        .directory_in(folder)
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")]);
    let mut run = builder.build().unwrap();
    let begun = run.directory().unwrap().join("begun");
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:stay\n!!!GADGET_END\n");
    if is_cancelled {
        while !begun.exists() {
            sleep(Duration::from_millis(5)).await;
        }
        turn.cancel();
    }
    let results = turn.finish(Stop::Natural).await;
    let expected = if is_cancelled { "cancelled" } else { "error" };
    assert_eq!(results[0].status.name(), expected);
    run.close().await.unwrap();
}

#[tokio::test]
#[ignore = "it counts what is open in the whole process"]
async fn nothing_is_left_wherever_it_is_dropped() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    // Things that are opened once per process, such as the runtime's pipe for signals, are opened here.
    conversation(folder).await;
    let before = Left::now(folder);
    for is_cancelled in [false, true] {
        stubborn(folder, is_cancelled).await;
        before.check(folder, "stubborn").await;
    }
    for polls in 0.. {
        let is_done = whole(folder, polls).await;
        before.check(folder, &format!("whole, {polls}")).await;
        if is_done {
            break;
        }
    }
    for turns in 0..60 {
        let conversation = poll_every_turn(Box::pin(conversation(folder)), turns * turns / 8);
        conversation.await;
        before.check(folder, &format!("every turn, {turns}")).await;
    }
    for polls in 0.. {
        let mut is_done = finish(folder, polls).await;
        before.check(folder, &format!("finish, {polls}")).await;
        is_done &= caught_up(folder, polls).await;
        before.check(folder, &format!("caught_up, {polls}")).await;
        is_done &= next(folder, polls).await;
        before.check(folder, &format!("next, {polls}")).await;
        is_done &= Box::pin(close(folder, polls)).await;
        before.check(folder, &format!("close, {polls}")).await;
        if is_done {
            break;
        }
    }
}
