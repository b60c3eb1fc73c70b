//! Logs that do not match are rejected, with the line.

use std::fs;
use std::path::Path;

use plaincall::{
    Dialect, Effect, Log, Recovery, Run, RunError, RunEvent, Stop, Tool, Toolbox,
    call::{Parameter, ParameterKind, ToolSpec},
    log::{LineEncoder, read_log},
};

use crate::resume::play::reference;
use crate::resume::scene::{Reply, Scene, Seen, toolbox};

fn scene() -> Scene {
    Scene::new([Reply::of("a=look b=nothing c=look<a")])
}

fn check(error: &RunError, line: u64, what: &str) {
    let expected = format!(
        "the log does not match this run: line {line}: {what}; resume it with the tools and settings it started with"
    );
    assert_eq!(error.to_string(), expected);
}

fn with_tools(path: &Path, change: impl Fn(Tool) -> Option<Tool>, more: Option<Tool>) -> RunError {
    let tools = toolbox(&Seen::default());
    let tools = tools.iter().cloned().filter_map(change).chain(more);
    let log = Log::resume(path).unwrap();
    let before = fs::read(path).unwrap();
    let builder = Run::builder(Toolbox::new(tools).unwrap()).log(log);
    let error = builder.build().unwrap_err();
    assert_eq!(
        fs::read(path).unwrap(),
        before,
        "a log that is refused stays as it is"
    );
    error
}

#[tokio::test(start_paused = true)]
async fn other_tools_and_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    reference(&scene(), &path).await;
    let is = |tool: &Tool, name: &str| tool.name() == name;
    let effect = |tool: Tool| {
        let changed = is(&tool, "put");
        Some(if changed {
            tool.effect(Effect::Write)
        } else {
            tool
        })
    };
    let definition = "the tool `put` has changed";
    check(&with_tools(&path, effect, None), 1, definition);
    let limit = |tool: Tool| {
        let changed = is(&tool, "two");
        Some(if changed {
            tool.max_concurrent(3)
        } else {
            tool
        })
    };
    let definition = "the tool `two` has changed";
    check(&with_tools(&path, limit, None), 1, definition);
    let gone = |tool: Tool| Some(tool).filter(|tool| !is(tool, "slow"));
    let what = "the tool `slow` no longer exists";
    check(&with_tools(&path, gone, None), 1, what);
    // A tool that did not exist then.
    let text = Parameter::new("text", ParameterKind::String).optional();
    let spec = ToolSpec::new("nothing").parameter(text);
    let known = Tool::raw(spec, |_, _| async { Ok(String::new()) });
    let what = "call 1 (`b`) ends as rejected, but the next event must be that call 1 (`b`) is complete, with these arguments";
    check(&with_tools(&path, Some, Some(known)), 11, what);
    let other = Scene {
        dialect: Dialect::block().start("<<<"),
        ..scene()
    };
    let log = Log::resume(&path).unwrap();
    let builder = other.builder(&Seen::default(), log, Recovery::Unknown);
    let what = "call 0 (`a`) appears, which does not follow from the events before";
    check(&builder.build().unwrap_err(), 4, what);
}

/// An approval of all calls of a tool applies to the tool of the call, even if the event has another name.
#[tokio::test(start_paused = true)]
async fn an_answer_for_another_tool() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let scene = Scene::new([Reply::of("always_a=look")]);
    reference(&scene, &path).await;
    let events = read_log(&fs::read(&path).unwrap()).unwrap().events;
    let mut encoder = LineEncoder::default();
    let lines = events.into_iter().map(|mut event| {
        if let RunEvent::Admitted(admission) = &mut event {
            assert!(admission.always);
            admission.name = "send".into();
        }
        encoder.next_line(&event)
    });
    fs::write(&path, lines.collect::<String>()).unwrap();
    let seen = Seen::default();
    let log = Log::resume(&path).unwrap();
    let builder = scene.builder(&seen, log, Recovery::Unknown);
    let mut run = builder.build().unwrap();
    let mut turn = run.turn();
    for piece in Reply::of("b=send c=look").pieces {
        turn.feed(piece);
    }
    assert!(turn.finish(Stop::Natural).await.all_ok());
    assert_eq!(seen.asked(), [1]);
}
