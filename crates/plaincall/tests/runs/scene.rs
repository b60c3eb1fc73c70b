//! Scenes: calls in one line, written as a reply, fed to a run, shown in one line.
//!
//! A scene is a list of calls, `id=tool,argument<dependency,dependency`. The result of a call is shown as
//! `id status start-end`, in milliseconds.

use std::time::Duration;

use plaincall::{Context, Effect, Run, RunBuilder, Stop, Tool, ToolResult, Toolbox, TurnResults};
use tokio::time::sleep;

#[derive(serde::Deserialize, schemars::JsonSchema)]
pub(crate) struct Milliseconds {
    pub(crate) ms: u64,
}

/// A tool that waits and then returns `end`.
pub(crate) fn sleeper(name: &str, end: fn(u64, &Context) -> ToolResult) -> Tool {
    Tool::new(name, move |Milliseconds { ms }, context| async move {
        sleep(Duration::from_millis(ms)).await;
        end(ms, &context)
    })
    .effect(Effect::Idempotent)
}

pub(crate) fn toolbox() -> Toolbox {
    let done = |_: u64, _: &Context| Ok(String::new());
    let before = |_: u64, context: &Context| {
        let results = context.dependencies().iter();
        Ok(results.fold(String::new(), |all, result| {
            all + &result.id + "=" + &result.output + ";"
        }))
    };
    Toolbox::new([
        sleeper("sleep", |ms, _| Ok(format!("slept {ms}"))),
        sleeper("fail", |ms, _| Err(format!("failed after {ms}").into())),
        sleeper("panic", |ms, _| panic!("no more after {ms}")),
        sleeper("before", before),
        sleeper("short", done).timeout(Duration::from_millis(70)),
        sleeper("two", done).max_concurrent(2),
        sleeper("alone", done).exclusive(),
        sleeper("look", done).effect(Effect::Read),
        sleeper("write", done).effect(Effect::Write),
        Tool::new("panic-at-once", |(), _| -> std::future::Ready<ToolResult> {
            panic!("at once")
        })
        .effect(Effect::Read),
    ])
    .unwrap()
}

pub(crate) fn builder() -> RunBuilder {
    Run::builder(toolbox())
}

/// Returns the calls of a scene, each as text of the syntax.
pub(crate) fn written(scene: &str, emoji: bool) -> Vec<String> {
    let calls = scene.split_whitespace().map(|call| {
        let (call, dependencies) = call.split_once('<').unwrap_or((call, ""));
        let (id, call) = call.split_once('=').unwrap();
        let (tool, ms) = call.split_once(',').unwrap_or((call, ""));
        if emoji {
            return format!("🛠️[{tool} {ms}]🛠️[/end]\n");
        }
        let argument = if ms.is_empty() {
            String::new()
        } else {
            format!("!!!ARG:ms\n{ms}\n")
        };
        format!("!!!GADGET_START:{tool}:{id}:{dependencies}\n{argument}!!!GADGET_END\n")
    });
    calls.collect()
}

pub(crate) fn shown(results: &TurnResults) -> String {
    let results = results.iter().map(|result| {
        let started = result
            .times
            .started
            .map_or(String::new(), |at| at.as_millis().to_string());
        let ended = result.times.ended.as_millis();
        format!("{} {} {started}-{ended}", result.id, result.status)
    });
    results.collect::<Vec<_>>().join(", ")
}

pub(crate) fn errors(results: &TurnResults) -> Vec<&str> {
    results
        .iter()
        .filter_map(|result| result.error.as_deref())
        .collect()
}

/// Feeds pieces of a reply with a pause after each.
pub(crate) async fn play(run: &mut Run, pieces: &[String], pause: u64) -> TurnResults {
    let mut turn = run.turn();
    for piece in pieces {
        turn.feed(piece);
        if pause > 0 {
            sleep(Duration::from_millis(pause)).await;
        }
    }
    turn.finish(Stop::Natural).await
}

pub(crate) async fn check_with(
    builder: RunBuilder,
    scene: &str,
    pause: u64,
    expected: &str,
) -> TurnResults {
    let mut run = builder.build().unwrap();
    let results = play(&mut run, &written(scene, false), pause).await;
    assert_eq!(shown(&results), expected, "{scene}");
    results
}

pub(crate) async fn check(scene: &str, expected: &str) -> TurnResults {
    check_with(builder(), scene, 0, expected).await
}

pub(crate) async fn check_errors(scene: &str, expected: &str, sentences: &[&str]) {
    let results = check(scene, expected).await;
    assert_eq!(errors(&results), sentences, "{scene}");
}
