//! Answers of the gate about interrupted calls, and their effects.

use std::fs;
use std::path::Path;
use std::time::Duration;

use plaincall::{
    BoxError, Gate, Log, Policy, Recovery, Request, Rules, Run, RunEvent, Status, Stop,
    gate::{GateFuture, RecoveryFuture},
    log::read_log,
    rules::Rule,
};
use tokio::time::{sleep, timeout};

use crate::resume::play::{edges, folder, play, reference, words};
use crate::resume::scene::{Reply, Scene, Seen, toolbox};

/// Returns the log of a scene up to and including the first matching event.
async fn cut_behind(scene: &Scene, path: &Path, is_last: impl Fn(&RunEvent) -> bool) {
    let (whole, _) = reference(scene, path).await;
    let events = read_log(&whole).unwrap().events;
    let last = events.iter().position(is_last).unwrap();
    fs::write(path, &whole[..edges(&whole)[last]]).unwrap();
}

fn starts(call: u32) -> impl Fn(&RunEvent) -> bool {
    move |event| matches!(event, RunEvent::Start(started) if started.call == call)
}

fn scene() -> Scene {
    Scene::new([Reply::of("a=send b=look<a"), Reply::of("c=look<a")])
}

#[tokio::test(start_paused = true)]
async fn words_and_ends() {
    let ends_by_word = [
        [
            "a ok found |  | the run was interrupted while the call was running; a user confirmed that it completed",
            "b ok foundb; |  | ",
            "c ok foundc; |  | ",
        ],
        [
            "a error  | it was not | the run was interrupted while the call was running; a user confirmed that it did not complete",
            "b skipped  | not run: it depends on `a`, which failed | ",
            "c skipped  | not run: it depends on `a`, which failed | ",
        ],
        ["a ok a; |  | ", "b ok a;b; |  | ", "c ok a;c; |  | "],
        [
            "a unknown  | the run was interrupted while the call was running, so its outcome is unknown | ",
            "b skipped  | not run: it depends on `a`, which was interrupted, with unknown outcome | ",
            "c skipped  | not run: it depends on `a`, which was interrupted, with unknown outcome | ",
        ],
    ];
    let folder = folder();
    for (number, (word, expected)) in words().into_iter().zip(ends_by_word).enumerate() {
        let path = folder.path().join(number.to_string());
        cut_behind(&scene(), &path, starts(0)).await;
        let (_, ends) = play(&scene(), Log::resume(&path).unwrap(), word).await;
        assert_eq!(ends.values().collect::<Vec<_>>(), expected);
        // The conversation has continued, so the gate is not asked again.
        let log = Log::resume(&path).unwrap();
        let (seen, _) = play(&scene(), log, Recovery::RunAgain).await;
        assert_eq!((seen.settled(), seen.all_starts()), (vec![], 0));
    }
}

/// Does not know the outcome.
#[derive(Clone, Copy, Debug)]
enum Clueless {
    Fails,
    Panics,
    IsSilent,
}

impl Gate for Clueless {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        Box::pin(async { Ok(plaincall::Decision::Allow) })
    }

    fn recover<'a>(&'a self, _: &'a Request) -> RecoveryFuture<'a> {
        Box::pin(async move {
            match self {
                Self::Fails => Err::<Recovery, BoxError>("no user is there".into()),
                Self::Panics => panic!("it is all too much"),
                Self::IsSilent => std::future::pending().await,
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn the_gate_cannot_answer() {
    let cases = [
        (Some(Clueless::Fails), " (no user is there)"),
        (Some(Clueless::Panics), " (it is all too much)"),
        (Some(Clueless::IsSilent), " (no answer within 7 s)"),
        (None, ""),
    ];
    let mut scene = scene();
    scene.policy.gate_timeout = Duration::from_secs(7);
    let folder = folder();
    for (number, (gate, reason)) in cases.into_iter().enumerate() {
        let path = folder.path().join(number.to_string());
        cut_behind(&scene, &path, starts(0)).await;
        let log = Log::resume(&path).unwrap();
        let mut builder = Run::builder(toolbox(&Seen::default())).log(log);
        if let Some(gate) = gate {
            builder = builder.gate(gate);
        }
        let mut run = builder.build().unwrap();
        let results = run.resume_turn().finish(Stop::Natural).await;
        let error = results[0].error.as_deref().unwrap();
        let all = format!(
            "the run was interrupted while the call was running, so its outcome is unknown{reason}"
        );
        assert_eq!(error, all);
        run.close().await.unwrap();
        let log = Log::resume(&path).unwrap();
        let (seen, ends) = play(&scene, log, words()[0].clone()).await;
        assert_eq!(seen.settled(), [0], "{gate:?}");
        assert!(ends[&0].starts_with("a ok found"), "{ends:?}");
    }
}

/// The run ends while the gate is asked.
#[tokio::test(start_paused = true)]
async fn a_question_survives_the_end_of_the_run() {
    #[derive(Clone, Copy, Debug)]
    enum End {
        Cancel,
        DropFinish,
        DropRun,
        TurnTimeout,
    }
    let emoji = Scene::new([Reply::emoji("send look"), Reply::emoji("look")]);
    let folder = folder();
    for (number, scene) in [scene(), emoji].into_iter().enumerate() {
        for end in [End::Cancel, End::DropFinish, End::DropRun, End::TurnTimeout] {
            let path = folder.path().join(format!("{number}{end:?}"));
            let mut scene = scene.clone();
            if matches!(end, End::TurnTimeout) {
                scene.policy.turn_timeout = Some(Duration::from_secs(1));
            }
            cut_behind(&scene, &path, starts(0)).await;
            let log = Log::resume(&path).unwrap();
            let builder = Run::builder(toolbox(&Seen::default())).log(log);
            let mut run = builder.gate(Clueless::IsSilent).build().unwrap();
            let mut turn = run.resume_turn();
            for piece in &scene.replies[0].pieces[1..] {
                turn.feed(piece);
            }
            sleep(Duration::from_millis(5)).await;
            match end {
                End::Cancel => {
                    turn.cancel();
                    let results = turn.finish(Stop::Natural).await;
                    assert_eq!(results[0].status.name(), "unknown", "{end:?}");
                    assert_eq!(results[1].status.name(), "cancelled", "{end:?}");
                }
                End::TurnTimeout => {
                    let results = turn.finish(Stop::Natural).await;
                    assert_eq!(results[0].status.name(), "unknown", "{end:?}");
                    let ended = results[0].times.ended;
                    assert_eq!(
                        ended.as_millis(),
                        1000,
                        "the time limit of the turn continues"
                    );
                }
                End::DropFinish => {
                    let finish = turn.finish(Stop::Natural);
                    assert!(timeout(Duration::from_millis(5), finish).await.is_err());
                }
                End::DropRun => drop(turn),
            }
            run.close().await.unwrap();
            let log = Log::resume(&path).unwrap();
            let (seen, ends) = play(&scene, log, words()[0].clone()).await;
            assert_eq!(seen.settled(), [0], "{end:?}");
            assert!(ends[&0].contains(" ok found"), "{end:?}: {ends:?}");
            assert!(ends[&1].contains(" cancelled "), "{end:?}: {ends:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn retry_delays_continue() {
    let scene = Scene {
        policy: Policy::default(),
        ..Scene::new([Reply::of("a=flaky")])
    };
    let folder = folder();
    let path = folder.path().join("log");
    cut_behind(&scene, &path, |event| matches!(event, RunEvent::BackOff(_))).await;
    let log = Log::resume(&path).unwrap();
    let (wait, at) = log
        .history()
        .iter()
        .find_map(|event| match event {
            RunEvent::BackOff(event) => Some((event.wait, event.at)),
            _ => None,
        })
        .unwrap();
    play(&scene, log, Recovery::Unknown).await;
    let events = read_log(&fs::read(&path).unwrap()).unwrap().events;
    let retry = events
        .iter()
        .find(|event| matches!(event, RunEvent::Retry(_)))
        .unwrap();
    // Logs count whole milliseconds.
    let waited = retry.at().checked_sub(at).unwrap();
    assert!(
        waited.abs_diff(wait) <= Duration::from_millis(1),
        "{waited:?}, {wait:?}"
    );
}

/// Starting another turn instead of resuming the turn of the log abandons that turn.
#[tokio::test(start_paused = true)]
async fn another_turn_gives_up_the_one_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let scene = Scene::new([Reply::of("a=send b=look")]);
    cut_behind(&scene, &path, starts(0)).await;
    let seen = Seen::default();
    let log = Log::resume(&path).unwrap();
    let builder = scene.builder(&seen, log, Recovery::Unknown);
    let mut run = builder.build().unwrap();
    assert!(run.unfinished().is_some());
    let mut turn = run.turn();
    for piece in Reply::of("c=look").pieces {
        turn.feed(piece);
    }
    let results = turn.finish(Stop::Natural).await;
    assert_eq!(results.len(), 1);
    assert_eq!(&*results[0].id, "c");
    assert!(results.all_ok());
    run.close().await.unwrap();

    // The results of a turn that had ended can be requested once more.
    let log = Log::resume(&path).unwrap();
    let builder = scene.builder(&seen, log, Recovery::Unknown);
    let mut run = builder.build().unwrap();
    assert!(run.unfinished().is_none());
    let again = run.resume_turn().finish(Stop::Natural).await;
    assert_eq!(again.iter().collect::<Vec<_>>().len(), 1);
    assert_eq!(again[0].output, results[0].output);
    run.close().await.unwrap();
}

/// A new rule denies a call that was approved before the crash. Other calls continue.
#[tokio::test(start_paused = true)]
async fn a_rule_that_is_new_is_heeded() {
    let folder = tempfile::tempdir().unwrap();
    for (denied, statuses) in [
        ("look", [Status::Cancelled, Status::Ok]),
        ("other", [Status::Ok, Status::Ok]),
    ] {
        let path = folder.path().join(denied);
        let scene = Scene::new([Reply::of("a=look b=put")]);
        cut_behind(&scene, &path, starts(0)).await;
        let seen = Seen::default();
        let log = Log::resume(&path).unwrap();
        let builder = scene.builder(&seen, log, Recovery::Unknown);
        let rule = Rule::deny([denied], "not any more");
        let mut run = builder.rules(Rules::new([rule])).build().unwrap();
        let read = run.unfinished().unwrap().text.len();
        let text = scene.replies[0].pieces.concat();
        let mut turn = run.resume_turn();
        turn.feed(&text[read..]);
        let results = turn.finish(Stop::Natural).await;
        let found: Vec<Status> = results.iter().map(|result| result.status).collect();
        assert_eq!(found, statuses, "{denied}: {results:?}");
        if statuses[0] == Status::Cancelled {
            let error = results[0].error.as_deref().unwrap();
            assert!(
                error.ends_with("a rule now denies it: not any more"),
                "{error}"
            );
        }
        run.close().await.unwrap();
    }
}
