//! Durable runs: the results of a run, from a journal of inputs alone.
#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod interrupted;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use plaincall::durable::{Answer, CallEnd, CallStart, DurableRun, DurableSettings, Step};
use plaincall::log::LineEncoder;
use plaincall::policy::Retry;
use plaincall::reply::ReplyItem;
use plaincall::tool::ToolSpec;
use plaincall::{
    AllowAll, BoxError, CallResult, Command, Context, Decision, Dialect, Effect, Gate as _, Log,
    Recovery, Run, RunEvent, Status, Stop, Tool, Toolbox, TurnResults,
};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

const REPLY: &str = "First.
!!!GADGET_START:read:a\n!!!ARG:text\none\n!!!GADGET_END
!!!GADGET_START:write:b:a\n!!!ARG:text\ntwo\n!!!GADGET_END
!!!GADGET_START:write:c:b\n!!!ARG:text\nfail\n!!!GADGET_END
!!!GADGET_START:read:d:c\n!!!ARG:text\nnever\n!!!GADGET_END
!!!GADGET_START:write:e:x\n!!!ARG:text\nunknown\n!!!GADGET_END
!!!GADGET_START:retried:f\n!!!GADGET_END
Last.";

/// The tool `retried` fails once.
fn tools() -> Toolbox {
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Text {
        text: String,
    }
    let run = |text: Text, context: Context| async move {
        if text.text == "fail" {
            return Err("it failed".into());
        }
        let results = context.dependencies().iter();
        let results: Vec<&str> = results.map(|result| &*result.output).collect();
        Ok(format!("{} [{}]", text.text, results.join(",")))
    };
    let starts = Arc::new(AtomicU32::new(0));
    let retried = move |(): (), _: Context| {
        let number = starts.fetch_add(1, Ordering::Relaxed);
        async move {
            if number == 0 {
                Err(BoxError::from("not yet"))
            } else {
                Ok("at last".to_owned())
            }
        }
    };
    let retry = Retry::attempts(2).waits(Duration::from_millis(1), Duration::from_millis(1));
    let tools = [
        Tool::new("read", run).effect(Effect::Read),
        Tool::new("write", run),
        Tool::new("retried", retried)
            .effect(Effect::Read)
            .retry(retry),
    ];
    Toolbox::new(tools).expect("tools")
}

/// An engine on one machine. It keeps the ends of calls as JSON, as an engine would.
struct Engine {
    settings: DurableSettings,
    run: DurableRun,
    events: Vec<RunEvent>,
    /// The outcome of each interrupted call, if the start of this call is lost.
    lost: Option<(&'static str, Recovery)>,
    /// The ids of started calls, in order.
    started: Vec<String>,
}

impl Engine {
    fn new(lost: Option<(&'static str, Recovery)>) -> Self {
        let settings = DurableSettings::new(tools()).expect("supported tools");
        let begin = settings.begin(json!({ "program": "test" }));
        let run = settings.start(begin).expect("a run");
        let (events, started) = (Vec::new(), Vec::new());
        Self {
            settings,
            run,
            events,
            lost,
            started,
        }
    }

    /// Runs a turn, one call at a time.
    async fn turn(&mut self, reply: &str) -> TurnResults {
        let items = (self.run).turn(reply, Stop::Natural, None, None, Duration::ZERO);
        for item in items {
            assert!(!matches!(item, ReplyItem::Text(text) if text.contains("GADGET")));
        }
        let mut has_ended = false;
        while !has_ended {
            self.events.extend(self.run.take_events());
            let step = self
                .run
                .next_step()
                .expect("a step until the turn has ended");
            has_ended = self.carry_out(step).await;
        }
        self.events.extend(self.run.take_events());
        self.run.results()
    }

    async fn carry_out(&mut self, step: Step) -> bool {
        let at = self.run.at() + Duration::from_millis(1);
        match step {
            Step::Ask { request, .. } => {
                let decision = AllowAll.decide(&request).await;
                self.run.decide(request.call, decision, at);
            }
            Step::Start(start) => {
                self.started.push(start.id.to_string());
                if self.lost.as_ref().is_some_and(|(id, _)| **id == *start.id) && start.attempt == 1
                {
                    self.run.interrupt(start.call, at);
                } else {
                    let (call, end) = (start.call, self.end(*start).await);
                    self.run.end_call(call, end, at);
                }
            }
            Step::Wait { call, delay } => self.run.retry(call, at + delay),
            Step::Recover(request) => {
                let (_, recovery) = self.lost.clone().expect("a lost call");
                self.run.recover(request.call, Ok(recovery), at);
            }
            Step::TurnEnd => return true,
            Step::Forget(_) => {}
            other => panic!("{other:?}"),
        }
        false
    }

    async fn end(&self, start: CallStart) -> CallEnd {
        let start = serde_json::to_string(&start).expect("JSON");
        let start = serde_json::from_str(&start).expect("the same call");
        let runner = self.settings.runner();
        let end = runner.run(start, "key", CancellationToken::new()).await;
        let end = serde_json::to_string(&end).expect("JSON");
        serde_json::from_str(&end).expect("the same end")
    }

    /// Checks that a run can be resumed from the events, and returns them without times.
    fn log(&self) -> Vec<Value> {
        let mut encoder = LineEncoder::default();
        let lines: String = self
            .events
            .iter()
            .map(|event| encoder.next_line(event))
            .collect();
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("log");
        std::fs::write(&path, lines).expect("a file");
        let log = Log::resume(&path).expect("a log");
        let run = Run::builder(tools())
            .log(log)
            .build()
            .expect("a run that resumes");
        assert!(run.unfinished().is_none());
        let events = self.events.iter().map(|event| {
            let mut event = serde_json::to_value(event).expect("JSON");
            for time in ["t_ms", "began_unix_ms"] {
                event.as_object_mut().expect("an object").remove(time);
            }
            event
        });
        events.collect()
    }
}

/// The id, status, output and error of each result.
fn outcomes(results: &[CallResult]) -> Vec<(String, Status, Option<String>, Option<String>)> {
    let text = |text: &Option<Arc<str>>| text.as_deref().map(str::to_owned);
    let outcome = |one: &CallResult| {
        (
            one.id.to_string(),
            one.status,
            text(&one.output),
            text(&one.error),
        )
    };
    results.iter().map(outcome).collect()
}

fn statuses(results: &[CallResult]) -> Vec<Status> {
    results.iter().map(|result| result.status).collect()
}

#[tokio::test]
async fn results_are_those_of_a_run() {
    use Status::{Error, Ok, Rejected, Skipped};

    let mut run = Run::builder(tools()).gate(AllowAll).build().expect("a run");
    let mut turn = run.turn();
    turn.feed(REPLY);
    let expected = turn.finish(Stop::Natural).await;

    let mut engine = Engine::new(None);
    let results = engine.turn(REPLY).await;
    assert_eq!(outcomes(&results), outcomes(&expected));
    assert_eq!(statuses(&results), [Ok, Ok, Error, Skipped, Rejected, Ok]);
    assert_eq!(engine.started, ["a", "f", "b", "f", "c"]);
    // The same inputs give the same events.
    let mut again = Engine::new(None);
    again.turn(REPLY).await;
    assert_eq!(engine.log(), again.log());
}

#[tokio::test]
async fn an_interrupted_write_starts_again_only_on_request() {
    use Status::{Error, Ok, Rejected, Skipped, Unknown};
    let done = Recovery::Done {
        output: "by hand".to_owned(),
    };
    let not_done = Recovery::NotDone {
        reason: "no".to_owned(),
    };
    let table = [
        (Recovery::Unknown, Unknown, [Skipped, Skipped], 1),
        (not_done, Error, [Skipped, Skipped], 1),
        (done, Ok, [Error, Skipped], 1),
        (Recovery::RunAgain, Ok, [Error, Skipped], 2),
    ];
    for (recovery, status, after, starts) in table {
        let mut engine = Engine::new(Some(("b", recovery.clone())));
        let results = engine.turn(REPLY).await;
        let expected = [Ok, status, after[0], after[1], Rejected, Ok];
        assert_eq!(statuses(&results), expected, "{recovery:?}");
        let count = engine.started.iter().filter(|id| **id == "b").count();
        assert_eq!(count, starts, "{recovery:?}");
        engine.log();
    }
}

#[tokio::test]
async fn calls_in_reasoning_do_not_run() {
    let call = "!!!GADGET_START:write\n!!!ARG:text\none\n!!!GADGET_END\n";
    let reply = format!("<think>{call}No.</think>\nDone.");
    let mut engine = Engine::new(None);
    assert!(engine.turn(&reply).await.is_empty());
    assert!(engine.started.is_empty());
    engine.log();
    // The end of the reply ends the line of a close marker.
    for reply in [format!("{call}Wrong.</think>"), format!("{call}</think>")] {
        let mut engine = Engine::new(None);
        assert_eq!(statuses(&engine.turn(&reply).await), [Status::Rejected]);
        assert!(engine.started.is_empty(), "{reply}");
        engine.log();
        engine.run = engine.settings.resume(&engine.events).expect("a run");
    }

    let dialect = Dialect::auto().without_reasoning();
    let settings = DurableSettings::new(tools()).expect("supported tools");
    engine.settings = settings.dialect(dialect);
    let begin = engine.settings.begin(json!({}));
    engine.run = engine.settings.start(begin).expect("a run");
    assert_eq!(statuses(&engine.turn(&reply).await), [Status::Ok]);
}

#[tokio::test]
async fn an_interrupted_read_starts_again() {
    let mut engine = Engine::new(Some(("a", Recovery::Unknown)));
    let results = engine.turn(REPLY).await;
    assert_eq!(results.first().map(|one| one.status), Some(Status::Ok));
    assert_eq!(engine.started.iter().filter(|id| **id == "a").count(), 2);
    engine.log();
}

#[tokio::test]
async fn the_next_turn_continues_from_the_events() {
    let mut engine = Engine::new(None);
    engine.turn(REPLY).await;
    engine.run = engine.settings.resume(&engine.events).expect("a run");
    let next = "!!!GADGET_START:read:g:b\n!!!ARG:text\nnext\n!!!GADGET_END";
    let results = engine.turn(next).await;
    let output = results.first().and_then(|result| result.output.as_deref());
    assert_eq!(output, Some("next [two [one []]]"));
    engine.log();
}

#[tokio::test]
async fn a_turn_that_was_abandoned_is_ended_without_a_start() {
    let mut engine = Engine::new(None);
    engine
        .run
        .turn(REPLY, Stop::Natural, None, None, Duration::ZERO);
    engine.events.extend(engine.run.take_events());
    // `a` has ended and `b` has started.
    while !engine.started.iter().any(|id| id == "b") {
        let step = engine.run.next_step().expect("a step");
        if let Step::Start(start) = &step
            && &*start.id == "b"
        {
            engine.started.push("b".to_owned());
        } else {
            engine.carry_out(step).await;
        }
        engine.events.extend(engine.run.take_events());
    }
    engine.run = engine.settings.resume(&engine.events).expect("a run");
    engine.events.extend(engine.run.take_events());
    assert!(engine.run.next_step().is_none());
    let results = engine.run.results();
    let of = |id| results.get(id).map(|result| result.status);
    assert_eq!(of("a"), Some(Status::Ok));
    assert_eq!(of("b"), Some(Status::Unknown));
    assert_eq!(of("c"), Some(Status::Cancelled));
    engine.log();
}

#[tokio::test]
async fn a_cancelled_turn_ends() {
    let mut engine = Engine::new(None);
    engine
        .run
        .turn(REPLY, Stop::Natural, None, None, Duration::ZERO);
    engine
        .run
        .cancel("the conversation was cancelled", Duration::ZERO);
    engine.events.extend(engine.run.take_events());
    let mut steps = Vec::new();
    while let Some(step) = engine.run.next_step() {
        if let Step::Ask { request, .. } = &step {
            // It comes too late.
            engine
                .run
                .decide(request.call, Ok(Decision::Allow), Duration::ZERO);
        }
        steps.push(step);
    }
    assert!(matches!(steps.last(), Some(Step::TurnEnd)), "{steps:?}");
    let results = engine.run.results();
    assert!(
        results
            .iter()
            .all(|one| matches!(one.status, Status::Cancelled | Status::Rejected))
    );
}

#[test]
fn tools_that_need_their_run_are_refused() {
    let in_run = Command::new(["true"]).directory("{directory:run}");
    let in_run = Tool::command(ToolSpec::new("in-run"), in_run).expect("a tool");
    let table = [
        (
            Tool::read_result(),
            "the tool `read_result` reads the results of other calls",
        ),
        (in_run, "the tool `in-run` uses `{directory:run}`"),
    ];
    for (tool, message) in table {
        let tools = Toolbox::new([tool]).expect("tools");
        let error = DurableSettings::new(tools)
            .expect_err("an error")
            .to_string();
        assert!(error.starts_with(message), "{error}");
    }
}

#[tokio::test]
async fn other_tools_are_an_error() {
    let mut engine = Engine::new(None);
    engine.turn(REPLY).await;
    let settings = DurableSettings::new(Toolbox::default()).expect("no tools");
    let error = settings
        .resume(&engine.events)
        .expect_err("an error")
        .to_string();
    assert!(
        error.contains("the tool `read` no longer exists"),
        "{error}"
    );
}

#[tokio::test]
async fn long_outputs_and_errors_are_truncated() {
    let tool = |name, is_error| {
        Tool::new(name, move |(): (), _| async move {
            let text = "x".repeat(1 << 20);
            if is_error { Err(text.into()) } else { Ok(text) }
        })
        .effect(Effect::Read)
    };
    let tools = Toolbox::new([tool("long", false), tool("fails", true)]).expect("tools");
    let settings = DurableSettings::new(tools).expect("supported tools");
    let mut run = settings.start(settings.begin(json!({}))).expect("a run");
    let reply = "!!!GADGET_START:long\n!!!GADGET_END\n!!!GADGET_START:fails\n!!!GADGET_END\n";
    run.turn(reply, Stop::Natural, None, None, Duration::ZERO);
    while let Some(step) = run.next_step() {
        if let Step::Ask { request, .. } = step {
            run.decide(request.call, Ok(Decision::Allow), Duration::ZERO);
        } else if let Step::Start(start) = step {
            let (call, token) = (start.call, CancellationToken::new());
            let end = settings.runner().run(*start, "key", token).await;
            run.end_call(call, end.truncated(1000), Duration::ZERO);
        }
    }
    let results = run.results();
    let output = results.first().and_then(|result| result.output.as_deref());
    assert!(output.is_some_and(|text| text.len() < 1100 && text.contains("of 1048576 bytes")));
    let error = results.last();
    let error = error.and_then(|result| result.error.as_deref());
    assert!(error.is_some_and(|text| text.len() < 66_000 && text.contains("of 1048576 bytes")));
}

#[test]
fn a_fingerprint_shows_every_change_of_a_command() {
    let tool = |command: Command| {
        let tool = Tool::command(ToolSpec::new("list"), command).expect("a tool");
        tool.fingerprint()
    };
    let list = || Command::new(["ls", "-l"]);
    let changes = [
        Command::new(["ls", "-a"]),
        Command::shell("ls -l"),
        list()
            .tools_directory("/tmp")
            .directory("{directory:tools}"),
        list().environment(["HOME"]),
        list().output_limit(10),
    ];
    for changed in changes {
        assert_ne!(tool(changed.clone()), tool(list()), "{changed:?}");
    }
    // The folder of the tools file may be another one on each machine.
    let moved = list().tools_directory("/tmp");
    assert_eq!(tool(moved), tool(list()));
    let called = Tool::new("list", |(): (), _| async { Ok(String::new()) });
    let before = called.fingerprint();
    assert_ne!(before, called.timeout(Duration::from_secs(1)).fingerprint());
}

#[test]
fn an_edit_is_checked_before_it_is_taken() {
    let answer = |json: Value| serde_json::from_value::<Answer>(json);
    let tool = Tool::new("list", |(): (), _| async { Ok(String::new()) });
    let edit = |arguments: Value| answer(json!({ "answer": "edit", "arguments": arguments }));
    assert!(edit(json!({})).unwrap().check(&tool).is_ok());
    assert!(edit(json!({ "a": 1 })).unwrap().check(&tool).is_err());
}

#[tokio::test]
async fn an_answer_reaches_the_question_that_is_open() {
    let answer = |json: Value| serde_json::from_value::<Answer>(json).map_err(BoxError::from);
    let mut engine = Engine::new(None);
    let reply = "!!!GADGET_START:write:a\n!!!ARG:text\none\n!!!GADGET_END\n";
    engine
        .run
        .turn(reply, Stop::Natural, None, None, Duration::ZERO);
    let edit = json!({ "answer": "edit", "arguments": { "text": "two" } });
    engine.run.answer(0, answer(edit), Duration::ZERO);
    // It comes too late.
    engine
        .run
        .answer(0, answer(json!({ "answer": "deny" })), Duration::ZERO);
    let mut starts = 0;
    let mut recoveries = 0;
    while let Some(step) = engine.run.next_step() {
        match step {
            Step::Start(start) => {
                starts += 1;
                assert_eq!(start.arguments.0.first().map(|pair| &*pair.1), Some("two"));
                engine.run.interrupt(0, Duration::ZERO);
            }
            Step::Recover(_) => {
                recoveries += 1;
                let json = if recoveries == 1 {
                    json!({ "answer": "run_again" })
                } else {
                    // It answers another question, so the outcome stays unknown.
                    json!({ "answer": "allow" })
                };
                engine.run.answer(0, answer(json), Duration::ZERO);
                engine
                    .run
                    .answer(0, answer(json!({ "answer": "done" })), Duration::ZERO);
            }
            _ => {}
        }
    }
    let results = engine.run.results();
    assert_eq!((starts, recoveries), (2, 2));
    assert_eq!(statuses(&results), [Status::Unknown]);
    let error = results.first().and_then(|result| result.error.as_deref());
    assert!(error.is_some_and(|text| text.contains("not one to this question")));
}
