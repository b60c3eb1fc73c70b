//! Logs that do not match are rejected, with the line.

use std::fs;
use std::path::Path;

use plaincall::log::{LineEncoder, read_log};
use plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall::{Dialect, Effect, Log, Recovery, Run, RunError, RunEvent, Stop, Tool, Toolbox};

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

/// Resumes the log with tools that `change` has changed.
async fn with_tools(
    path: &Path,
    change: &dyn Fn(Tool) -> Option<Tool>,
    more: Option<Tool>,
) -> Result<(), RunError> {
    let tools = toolbox(&Seen::default());
    let tools = tools.iter().cloned().filter_map(change).chain(more);
    let log = Log::resume(path).unwrap();
    let before = fs::read(path).unwrap();
    let built = Run::builder(Toolbox::new(tools).unwrap()).log(log).build();
    let is_refused = built.is_err();
    let is_as_before = fs::read(path).unwrap() == before;
    assert!(
        !is_refused || is_as_before,
        "a log that is refused stays as it is"
    );
    built?.close().await.unwrap();
    Ok(())
}

/// Only interrupted calls need the tools that they had.
#[tokio::test(start_paused = true)]
async fn other_tools_and_other_settings() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let cut = folder.path().join("cut");
    reference(&scene(), &path).await;
    let whole = fs::read_to_string(&path).unwrap();
    let result = whole.find("\"event\":\"result\",\"call\":0").unwrap();
    let interrupted = &whole[..=whole[..result].rfind('\n').unwrap()];
    let of = |tool: &'static str, change: fn(Tool) -> Option<Tool>| {
        move |it: Tool| {
            if it.name() == tool {
                change(it)
            } else {
                Some(it)
            }
        }
    };
    let effect: fn(Tool) -> Option<Tool> = |tool| Some(tool.effect(Effect::Write));
    let limit: fn(Tool) -> Option<Tool> = |tool| Some(tool.max_concurrent(3));
    let gone: fn(Tool) -> Option<Tool> = |_| None;
    for (change, what) in [
        (effect, "has changed"),
        (limit, "has changed"),
        (gone, "no longer exists"),
    ] {
        for tool in ["look", "slow"] {
            let built = with_tools(&path, &of(tool, change), None).await;
            built.unwrap_or_else(|error| panic!("{tool}: {error}"));
            fs::write(&cut, interrupted).unwrap();
            let built = with_tools(&cut, &of(tool, change), None).await;
            if tool == "look" {
                check(&built.unwrap_err(), 1, &format!("the tool `look` {what}"));
            } else {
                built.unwrap_or_else(|error| panic!("{tool}: {error}"));
            }
        }
    }
    // A tool that did not exist then, and was called.
    let text = Parameter::new("text", ParameterKind::String).optional();
    let spec = ToolSpec::new("nothing").parameter(text);
    let known = Tool::raw(spec, |_, _| async { Ok(String::new()) });
    with_tools(&path, &Some, Some(known)).await.unwrap();
    let other = Scene {
        dialect: Dialect::block().start("<<<"),
        ..scene()
    };
    let log = Log::resume(&path).unwrap();
    let builder = other.builder(&Seen::default(), log, Recovery::Unknown);
    let what = "call 1 (`a`) appears, which does not follow from the events before";
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
