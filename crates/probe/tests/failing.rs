//! Servers that fail, models that are slow, and comparisons that continue.

use std::time::Duration;

use plaincall_agent::model::{
    Constrain, Finish, Model, ModelError, ModelErrorKind, ModelRequest, Reply, Scripted,
    ScriptedReply,
};
use plaincall_probe::{Arm, Probe, Reference, Verdict, tasks};
use tokio::time::Instant;

use crate::references::{hard, named, run};

/// A model that only reads text.
struct TextOnly(Reference);

impl Model for TextOnly {
    fn name(&self) -> &str {
        self.0.name()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        self.0.reply(request)
    }
}

#[tokio::test(start_paused = true)]
async fn servers_that_fail_end_the_comparison() {
    for (kind, attempts) in [(ModelErrorKind::Connect, 1), (ModelErrorKind::Timeout, 3)] {
        let error = ModelError::new(kind, "out of reach");
        let model = Scripted::with(move |_, _| ScriptedReply::error(error.clone()));
        let run = run(Probe::new(model)).await;
        let report = run.report();
        assert_eq!(report.attempts.len(), attempts);
        assert_eq!(
            run.error().map(|error| error.message.as_str()),
            Some("out of reach")
        );
        assert!(!run.is_complete());
        assert!(report.arms.iter().all(|arm| arm.attempts == 0));
        assert_eq!(report.verdict, Verdict::Nothing);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_without_native_calls_ends_only_that_arm() {
    let reference = Reference::named("emoji").expect("a model");
    let two = || tasks().into_iter().take(2);
    let refusing = Scripted::with(|_, request| match request.native {
        Some(_) => ScriptedReply::error(ModelError::new(ModelErrorKind::Refused, "no tools here")),
        None => "I cannot.".into(),
    });
    let run_of = run(Probe::new(refusing).tasks(two())).await;
    let report = run_of.report();
    let native = report.arm("native").expect("an arm");
    assert_eq!(
        (native.attempts, native.unavailable.as_deref()),
        (0, Some("no tools here"))
    );
    assert_eq!(report.arm("json").map(|arm| arm.attempts), Some(2));
    assert!(run_of.error().is_none());

    let run_of = run(Probe::new(TextOnly(reference)).tasks(two())).await;
    let report = run_of.report();
    assert!(
        report
            .arm("native")
            .is_some_and(|arm| arm.unavailable.is_some())
    );
    assert!(run_of.is_complete());
}

/// Errors of the server's own parser count against native calls.
#[tokio::test(start_paused = true)]
async fn a_server_that_cannot_parse_a_call_is_wrong() {
    let model = Scripted::with(|_, _| {
        ScriptedReply::error(ModelError::new(
            ModelErrorKind::Busy,
            "Failed to parse input",
        ))
    });
    let probe = Probe::new(model).arms(Arm::named("native"));
    let run = run(probe.tasks(tasks().into_iter().take(2))).await;
    let report = run.report();
    let native = report.arm("native").expect("an arm");
    assert_eq!(
        (native.attempts, native.correct, native.server_failures),
        (2, 0, 0)
    );
}

#[tokio::test(start_paused = true)]
async fn every_wait_has_an_end() {
    let model = Scripted::with(|_, _| ScriptedReply::new().text("Let me think.").stall());
    let begin = Instant::now();
    let probe = Probe::new(model)
        .time(Duration::from_secs(9))
        .tasks(hard().take(5))
        .concurrent(20);
    let report = run(probe).await.report();
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!(
        (report.attempts.len(), report.verdict),
        (20, Verdict::Nothing)
    );
}

/// Each reply takes this time.
fn slow(per_reply: Duration) -> Scripted {
    Scripted::with(move |_, _| ScriptedReply::new().pause(per_reply).text("I cannot."))
}

#[tokio::test(start_paused = true)]
async fn a_budget_holds_on_any_machine() {
    let budget = Duration::from_secs(100);
    for (per_reply, least, most) in [(1, 10, 34), (8, 1, 3), (20, 1, 1), (60, 0, 0)] {
        let model = slow(Duration::from_secs(per_reply));
        let begin = Instant::now();
        let run = run(Probe::new(model).tasks(hard()).budget(budget)).await;
        assert!(begin.elapsed() <= budget, "{per_reply}");
        let report = run.report();
        let rounds = u32::try_from(report.attempts.len()).expect("few") / 4;
        assert!((least..=most).contains(&rounds), "{per_reply} s: {rounds}");
        // Every arm has the same tasks.
        assert!(report.arms.iter().all(|arm| arm.attempts == rounds));
        assert!(
            report
                .attempts
                .iter()
                .all(|attempt| !attempt.task.starts_with("agent-"))
        );
    }
}

#[tokio::test(start_paused = true)]
async fn a_model_without_an_end_does_not_use_up_a_budget() {
    // 60 tokens in a second, as a small model on a laptop.
    let endless = |reasons: bool| {
        Scripted::with(move |_, request| {
            let tokens = request.max_tokens.expect("a limit");
            let reply = ScriptedReply::new().pause(Duration::from_secs(1) * tokens / 60);
            let text = "The gauge shows the gauge. ".repeat(30);
            if reasons {
                reply.text(format!("<think>\n{text}"))
            } else {
                reply.text(text)
            }
        })
    };
    let quick = async |model| {
        let reserve = named([
            "json-examples",
            "block-examples",
            "emoji-examples",
            "block-keyed",
            "emoji-keyed",
            "block-angle",
        ]);
        let probe = Probe::new(model).reserve(reserve);
        let probe = probe.budget(Duration::from_secs(100));
        run(probe.reply_tokens(Some(512))).await.report()
    };
    let model = endless(false);
    // Four tasks with ten arms.
    assert_eq!(quick(model.clone()).await.attempts.len(), 40);
    let limits = |model: &Scripted| {
        let requests = model.requests().into_iter();
        requests
            .map(|request| request.max_tokens)
            .collect::<Vec<_>>()
    };
    assert!(limits(&model).iter().all(|limit| *limit == Some(128)));
    let model = endless(true);
    let report = quick(model.clone()).await;
    let limits = limits(&model);
    assert_eq!(limits[..3], [128, 512, 512].map(Some));
    // The reply that was truncated in its reasoning does not count.
    assert!(report.attempts.len() < limits.len());
}

#[tokio::test(start_paused = true)]
async fn the_remaining_time_is_estimated() {
    let model = slow(Duration::from_secs(4));
    let mut run = Probe::new(model).begin();
    assert_eq!(run.time_left(), None);
    assert_eq!(run.total(), 64 * 4);
    for _ in 0..8 {
        run.next().await.expect("an attempt");
    }
    let left = run.time_left().expect("an estimate").as_secs();
    assert!((100..10_000).contains(&left), "{left}");
    assert_eq!(run.finished(), 8);
    while run.next().await.is_some() {}
    // It solves nothing, so the first level is the last one.
    assert_eq!((run.finished(), run.total()), (16, 16));
    assert!(run.is_complete());
}

#[tokio::test(start_paused = true)]
async fn finished_attempts_are_not_repeated() {
    let some = || tasks().into_iter().take(3);
    let first = Scripted::with(|_, _| "I cannot.".into());
    let mut begun = Probe::new(first.clone()).tasks(some()).begin();
    let mut attempts = Vec::new();
    for _ in 0..5 {
        attempts.push(begun.next().await.expect("an attempt"));
    }
    drop(begun);
    let second = Scripted::with(|_, _| "I cannot.".into());
    let probe = Probe::new(second.clone()).tasks(some());
    let continued = run(probe.finished(attempts)).await;
    assert_eq!(continued.report().attempts.len(), 12);
    assert_eq!(second.requests().len(), 7);
    let whole = run(Probe::new(first).tasks(some())).await;
    assert_eq!(continued.report(), whole.report());
}

#[tokio::test(start_paused = true)]
async fn all_arms_get_the_same_seed() {
    let model = Scripted::with(|_, _| "I cannot.".into());
    let probe = Probe::new(model.clone()).tasks(tasks().into_iter().take(1));
    run(probe.seed(Some(7)).repeat(2)).await;
    let seeds: Vec<_> = model
        .requests()
        .iter()
        .map(|request| request.seed)
        .collect();
    assert_eq!(seeds, [[Some(7); 4], [Some(8); 4]].concat());
}

/// A server that rejects grammars.
struct WithoutGrammars;

impl Model for WithoutGrammars {
    fn name(&self) -> &'static str {
        "without-grammars"
    }

    fn constrains(&self) -> Constrain {
        Constrain::Always
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        let is_rejected = request.grammar.is_some();
        Reply::new(move |out| async move {
            if is_rejected {
                return Err(ModelError::new(ModelErrorKind::Refused, "no grammars"));
            }
            out.text("I cannot.").await;
            Ok(Finish::stop())
        })
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_rejects_grammars_ends_only_that_arm() {
    let arms = ["block", "block-grammar"].map(|name| Arm::named(name).expect("an arm"));
    let run_of = run(Probe::new(WithoutGrammars).arms(arms)).await;
    let report = run_of.report();
    let found = report.arms.iter();
    let found: Vec<_> = found
        .map(|arm| (arm.attempts, arm.unavailable.as_deref()))
        .collect();
    assert_eq!(found, [(4, None), (0, Some("no grammars"))]);
    assert!(run_of.is_complete());
}
