//! Random conversations that are logged and resumed, from their end or from a truncated log. Threads write the logs,
//! so real time passes, but little of it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::sync::Arc;

use plaincall_agent::model::{Message, Role};
use plaincall_agent::plaincall::{Log, RunEvent, Tool};
use plaincall_agent::{Agent, AgentErrorKind, AgentEvent, Conversation};
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::cases;
use serde_json::Value;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::nested::check_continued;
use super::question;
use super::reading::check_reported;
use super::settings::{agent, limits};
use super::tools::ATTEMPTS;
use super::world::World;
use crate::scenarios::changed::{Change, Changes};
use crate::scenarios::reported::{check_turns, replies};

/// The tools that change.
const TOOLS: &[&str] = &[
    "quick", "any", "write", "retried", "alone", "stubborn", "finish",
];
const CHANGES: [Change; 5] = [
    Change::Same,
    Change::Gone,
    Change::Gone,
    Change::Settings,
    Change::Schema,
];

#[test]
fn random_sessions() {
    crate::scenarios::expect_panics();
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .enable_time()
        .build()
        .unwrap();
    runtime.block_on(async {
        let mut playing = JoinSet::new();
        let mut failed = Vec::new();
        for case in cases("SESSION", 25) {
            playing.spawn(async move {
                let played = tokio::spawn(session(case)).await;
                (case, played)
            });
        }
        while let Some(played) = playing.join_next().await {
            let (case, played) = played.unwrap();
            if played.is_err() {
                failed.push(case);
            }
        }
        assert!(failed.is_empty(), "SESSION_CASE: {failed:?}");
    });
}

/// The result of one question.
struct Asked {
    /// `true` if it was dropped or cancelled in the middle.
    is_cut: bool,
    /// Whether results were shortened.
    is_shortened: bool,
}

async fn session(seed: u64) {
    let world = World::new(seed, true);
    let mut limits = limits(&world);
    limits.time = super::LONGEST;
    let random = world.random();
    let agent = |changes: &Changes| world.with(random.clone(), || agent(&world, limits, changes));
    let first = agent(&Changes::default());
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let log = Log::create(&path).unwrap();
    let mut talk = first.session(log, Value::from(seed)).await.unwrap();
    world.set_dialect(talk.dialect());
    let mut is_shortened = false;
    let mut is_cut = false;
    for number in 0..=world.below(3) {
        let asked = ask(&world, &mut talk, Some(number)).await;
        is_shortened |= asked.is_shortened;
        is_cut = asked.is_cut;
    }
    let before = talk.messages();
    let dialect = talk.dialect().clone();
    talk.close().await.unwrap();
    assert_eq!(
        world.tools.count() + world.people.count(),
        0,
        "something still works"
    );

    let is_torn = world.one_in(2);
    if is_torn {
        // The first line describes the run; a log without it is invalid.
        let log = fs::read(&path).unwrap();
        let first = log.iter().position(|byte| *byte == b'\n').unwrap() + 1;
        fs::write(&path, &log[..first + world.below(log.len() - first + 1)]).unwrap();
    }
    let log = Log::resume(&path).unwrap();
    let starts = world.all_starts();
    let (ended, started) = (ended(log.history()), world.started());
    let mut random_changes = Random::new(!seed);
    let kinds = [&[Change::Same][..], &CHANGES][random_changes.below(2)];
    let changes = Changes::after(log.history(), TOOLS, kinds, &mut random_changes);
    let mut talk = agent(&changes).session(log, Value::Null).await.unwrap();
    check_gone(&first, &talk, &changes);
    assert_eq!(*talk.dialect(), dialect);
    assert_eq!(world.all_starts(), starts, "something was started again");
    let after = talk.messages();
    if !is_torn && !is_shortened && !is_cut && changes.is_hidden() {
        assert_eq!(after, before, "the model reads the same as before");
    }
    check_beginning(&before, &after, changes.is_hidden());
    // Interrupted subagents continue if there is no new question.
    let continues = world.one_in(2);
    let asked = ask(&world, &mut talk, (!continues).then_some(7)).await;
    let mut offered = first.tools().iter();
    let is_gone = offered.any(|tool| changes.gone().any(|gone| gone == tool.name()));
    let is_told = |message: &Message| {
        message
            .text
            .contains("Tools that are no longer available: ")
    };
    if is_gone && !asked.is_cut {
        assert!(
            talk.messages().iter().any(is_told),
            "the model does not know"
        );
    }
    let now = world.started();
    // Sometimes a model repeats the first tag.
    for call in ended.iter().filter(|(_, tag)| tag != "t1") {
        assert_eq!(now.get(call), started.get(call), "{call:?} ran again");
    }
    for request in world.asked() {
        check_turns(&request.messages);
    }
    check_continued(&world.nested());
    talk.close().await.unwrap();

    // The log contains everything: each call ends once, and is reported once.
    let log = Log::resume(&path).unwrap();
    let ended = log.history().iter().filter_map(|event| match event {
        RunEvent::Result(result) => Some(result.clone()),
        _ => None,
    });
    let mut ended: Vec<_> = ended.collect();
    let nested = log.history().iter().filter_map(|event| match event {
        RunEvent::Call(call) if call.submitted.is_some() => Some(call.call),
        _ => None,
    });
    let nested: BTreeSet<u32> = nested.collect();
    ended.sort_by_key(|result| result.call);
    for (place, result) in ended.iter().enumerate() {
        assert_eq!(result.call as usize, place, "each call ends once");
    }
    // The tools come back, except those of calls that have not ended.
    let changes = Changes::after(log.history(), TOOLS, &[Change::Same], &mut random_changes);
    let talk = agent(&changes).session(log, Value::Null).await.unwrap();
    check_gone(&first, &talk, &changes);
    ended.retain(|result| !nested.contains(&result.call));
    let reported = check_reported(&talk.messages(), &ended);
    assert_eq!(reported, ended.len(), "a call is not reported");
    talk.close().await.unwrap();
    // Events missing in a truncated log happen again.
    if !is_torn || !continues {
        world.check_starts(ATTEMPTS);
    }
}

/// Returns the calls that have ended, by their tools and tags.
fn ended(history: &[RunEvent]) -> BTreeSet<(String, String)> {
    let mut calls = BTreeMap::new();
    let mut ended = BTreeSet::new();
    for event in history {
        match event {
            RunEvent::Waiting(call) => {
                let mut arguments = call.arguments.0.iter();
                let tag = arguments.find(|(pointer, _)| pointer == "tag");
                let tag = tag.map(|(_, tag)| tag.clone()).unwrap_or_default();
                calls.insert(call.call, (call.name.to_string(), tag));
            }
            RunEvent::Result(result) => ended.extend(calls.get(&result.call).cloned()),
            _ => {}
        }
    }
    ended
}

/// Asks a question, or lets the model continue without one.
async fn ask(world: &Arc<World>, talk: &mut Conversation, number: Option<usize>) -> Asked {
    let mut asked = Asked {
        is_cut: false,
        is_shortened: false,
    };
    let mut events_left = if world.one_in(4) {
        world.below(60)
    } else {
        usize::MAX
    };
    let is_dropped = world.one_in(2);
    let mut asking = match number {
        Some(number) => talk.stream(question(world, number)),
        None => talk.resume(),
    };
    let cancel = asking.cancellation();
    while let Some(event) = asking.next().await {
        asked.is_shortened |= matches!(event, AgentEvent::Shortened { .. });
        events_left = events_left.saturating_sub(1);
        if events_left == 0 {
            asked.is_cut = true;
            if is_dropped {
                return asked;
            }
            cancel.cancel();
        }
    }
    let answer = asking.answer().await;
    // On a busy machine the time may be over before the end of the turn before is known.
    asked.is_cut |= answer.is_err_and(|error| matches!(error.kind, AgentErrorKind::Time));
    asked
}

/// Asserts that the user learns which tools are gone.
fn check_gone(first: &Agent, talk: &Conversation, changes: &Changes) {
    let gone: BTreeSet<&str> = talk.gone_tools().iter().map(String::as_str).collect();
    let mut offered = first.tools().iter().map(Tool::name);
    assert!(
        gone.iter().all(|name| changes.of(name) == Change::Gone),
        "{gone:?}"
    );
    assert!(
        offered.all(|name| changes.of(name) != Change::Gone || gone.contains(name)),
        "{gone:?} of {changes:?}"
    );
}

/// Asserts that the model's texts are the ones it wrote, as far as the log contains them.
fn check_beginning(before: &[Message], after: &[Message], has_same_tools: bool) {
    let system = |messages: &[Message]| {
        messages
            .first()
            .filter(|first| first.role == Role::System)
            .cloned()
    };
    if has_same_tools {
        assert_eq!(system(before), system(after));
    }
    let (before, after) = (replies(before), replies(after));
    let Some((last, whole)) = after.split_last() else {
        return;
    };
    // A reply that was dropped is in the log before it is among the messages.
    if let Some(before) = before.get(..whole.len()) {
        assert_eq!(before, whole, "the model's own words");
    }
    if let Some(before) = before.get(whole.len()) {
        assert!(before.starts_with(last), "{last:?} of {before:?}");
    }
}
