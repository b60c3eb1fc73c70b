//! Random conversations, truncated at random places: the log always matches, and nothing is repeated.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::Path;
use std::time::Duration;

use plaincall::{
    AllowAll, Effect, Log, Policy, Run, RunEvent, Stop, Tool, Toolbox,
    log::read_log,
    policy::{Order, Writes},
};
use plaincall_oracle::arbitrary_texts::Random;

use crate::resume::play::{check_cut, edges, folder, reference};
use crate::resume::scene::{Reply, Same, Scene, Seen, toolbox};

const TOOLS: [&str; 12] = [
    "look", "slow", "put", "send", "send", "fail", "flaky", "guess", "two", "alone", "done",
    "nothing",
];

const IDS: [&str; 6] = ["a", "b", "edit_1", "deny_1", "always_1", "wrong_1"];

fn reply(random: &mut Random) -> Reply {
    let count = random.below(8) + 1;
    let mut calls = String::new();
    let is_emoji = random.below(3) == 0;
    for place in 0..count {
        // A tool that ends the run would leave little to check.
        let mut tool = random.pick(&TOOLS);
        if tool == "done" && random.below(4) > 0 {
            tool = "look";
        }
        if is_emoji {
            write!(calls, "{tool} ").unwrap();
            continue;
        }
        let id = match random.below(3) {
            0 => random.pick(&IDS).to_owned(),
            1 => String::new(),
            _ => format!("c{place}"),
        };
        let mut names = Vec::new();
        while random.below(2) == 0 {
            names.push(match random.below(3) {
                0 => random.pick(&IDS).to_owned(),
                _ => format!("c{}", random.below(count)),
            });
        }
        write!(calls, "{id}={tool}<{} ", names.join(",")).unwrap();
    }
    let reply = if is_emoji {
        Reply::emoji(&calls)
    } else {
        Reply::of(&calls)
    };
    let reply = reply.stop(random.pick(&[Stop::Natural, Stop::Natural, Stop::Broken]));
    match Some(random.below(4 * count)).filter(|piece| *piece < count) {
        Some(piece) => reply.cancel_after(piece),
        None => reply,
    }
}

fn scene(seed: u64) -> Scene {
    let mut random = Random::new(seed);
    let random = &mut random;
    let orders = [Order::Sequential, Order::StopOnError];
    let orders = [Order::Graph, orders[0], orders[1]];
    let policy = Policy::default()
        .concurrent(random.pick(&[0, 0, 1, 2, 3]))
        .calls_per_turn(random.one_in(4).then_some(5))
        .turn_timeout(random.one_in(4).then_some(Duration::from_millis(25)))
        .writes(random.pick(&[Writes::AtOnce, Writes::AtOnce, Writes::AtEndOfTurn]))
        .block_order(random.pick(&[Order::Graph, orders[0], orders[1], Order::Graph]))
        .emoji_order(random.pick(&orders));
    let replies: Vec<Reply> = (0..=random.below(3)).map(|_| reply(random)).collect();
    let mut scene = Scene {
        policy,
        ..Scene::new(replies)
    };
    scene.same = if hangs_on_time(&scene) {
        Same::Nothing
    } else {
        Same::Outputs
    };
    scene
}

/// Returns whether timing affects how calls end: which calls a cancellation finds running, or which of two answers
/// comes first.
fn hangs_on_time(scene: &Scene) -> bool {
    let stops = Order::StopOnError;
    let policy = &scene.policy;
    let mut replies = scene.replies.iter();
    policy.turn_timeout.is_some()
        || policy.block_order == stops
        || policy.emoji_order == stops
        || replies.any(|reply| {
            let text = String::from_utf8_lossy(&reply.pieces.concat()).into_owned();
            reply.cancel_after.is_some() || text.contains(":always_1:")
        })
}

/// The log has the settings with which each call ran: later resumes neither reject such a log nor change it.
#[tokio::test(start_paused = true)]
async fn calls_with_changed_settings_are_replayed() {
    let folder = folder();
    let path = folder.path().join("log.jsonl");
    let settings = [
        (1, Effect::Read),
        (4, Effect::Read),
        (4, Effect::Read),
        (1, Effect::Write),
        (3, Effect::Idempotent),
        (1, Effect::Read),
    ];
    for (place, (most, effect)) in settings.into_iter().enumerate() {
        let spec = plaincall::tool::ToolSpec::new("t").effect(effect);
        let tool = Tool::raw(spec, |_, _| async {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok("done".to_owned())
        });
        let log = if place == 0 {
            Log::create(&path).unwrap()
        } else {
            Log::resume(&path).unwrap()
        };
        let tools = Toolbox::new([tool.max_concurrent(most)]).unwrap();
        let run = Run::builder(tools).gate(AllowAll).log(log).build();
        let mut run = run.unwrap_or_else(|error| panic!("resume {place}: {error}"));
        let mut turn = run.turn();
        turn.feed("!!!GADGET_START:t\n!!!GADGET_END\n".repeat(3));
        assert!(turn.finish(Stop::Natural).await.all_ok());
        run.close().await.unwrap();
    }
    let events = read_log(&fs::read(&path).unwrap()).unwrap().events;
    let recorded = events.iter().filter_map(|event| match event {
        RunEvent::Resumed(resumed) => Some(resumed.tools.len()),
        _ => None,
    });
    assert_eq!(recorded.collect::<Vec<_>>(), [1, 0, 1, 1, 1]);
}

/// Resumes a truncated log without the tools that no open call needs, or with changed ones, and the result with the tools it
/// started with.
async fn check_other_tools(scene: &Scene, log: &[u8], path: &Path, cut: usize) {
    let (mut open, mut text) = (BTreeMap::new(), Vec::new());
    for event in read_log(log).unwrap().events {
        match event {
            RunEvent::Call(call) => {
                open.insert(call.call, call.name.to_string());
            }
            RunEvent::Result(result) => {
                open.remove(&result.call);
            }
            // The calls of a reply may not be in the log yet.
            RunEvent::Text(delta) => text.extend_from_slice(delta.source.as_bytes()),
            RunEvent::TurnEnd(_) => text.clear(),
            _ => {}
        }
    }
    let text = String::from_utf8_lossy(&text);
    let is_open =
        |tool: &Tool| open.values().any(|name| name == tool.name()) || text.contains(tool.name());
    let change = |tool: Tool| match cut % 3 {
        _ if is_open(&tool) => Some(tool),
        0 => None,
        1 => Some(tool.effect(Effect::Idempotent).max_concurrent(1)),
        _ => Some(tool.timeout(Duration::from_secs(77))),
    };
    fs::write(path, log).unwrap();
    let seen = Seen::default();
    let tools = toolbox(&seen);
    let changed: Vec<Tool> = tools.iter().cloned().filter_map(change).collect();
    for tools in [Toolbox::new(changed).unwrap(), tools] {
        let builder = Run::builder(tools).policy(scene.policy);
        let builder = builder.dialect(scene.dialect.clone()).gate(AllowAll);
        let built = builder.log(Log::resume(path).unwrap()).build();
        let mut run = built.unwrap_or_else(|error| panic!("cut at {cut}: {error}"));
        if run.unfinished().is_some() {
            run.resume_turn().finish(Stop::Broken).await;
        }
        run.close().await.unwrap();
    }
}

/// Every scene is truncated at this many of its lines, or at all if it has fewer.
async fn check(seeds: std::ops::Range<u64>, cuts: usize) {
    let directory = folder();
    for seed in seeds {
        let scene = scene(seed);
        let whole = directory.path().join(format!("whole-{seed}"));
        let (whole, expected) = reference(&scene, &whole).await;
        let path = directory.path().join("cut");
        let edges = edges(&whole);
        let step = edges.len().div_ceil(cuts);
        for cut in edges
            .into_iter()
            .skip(usize::try_from(seed).unwrap() % step)
            .step_by(step)
        {
            eprintln!("seed {seed}, cut at {cut}");
            check_cut(&scene, &whole[..cut], &path, &expected).await;
            check_other_tools(&scene, &whole[..cut], &path, cut).await;
        }
    }
}

#[tokio::test(start_paused = true)]
async fn random_conversations_are_gone_on_with() {
    check(0..30, 3).await;
}

/// `cargo xtask promises` runs it.
#[tokio::test(start_paused = true)]
#[ignore = "it takes minutes"]
async fn many_random_conversations_are_gone_on_with() {
    check(1000..1200, 1000).await;
}
