//! Policies of tools and runs about the end of calls, and the results for dependents.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use plaincall::gate::GateFuture;
use plaincall::policy::{Dependents, Retry, Writes};
use plaincall::rules::Rule;
use plaincall::tool::Arguments;
use plaincall::{
    AllowAll, Context, Decision, Dialect, Effect, Gate, Log, Policy, Request, Rules, Run,
    RunBuilder, RunEvent, Stop, Tool, Toolbox, TurnResults,
};
use tokio::time::{Instant, sleep};

use crate::runs::scene::{builder, errors, play, shown, sleeper, written};

/// A tool that fails at its first starts, and the times of its starts.
fn flaky(name: &str, failures: usize, retry: Retry) -> (Tool, Arc<Mutex<Vec<Instant>>>) {
    let starts = Arc::new(Mutex::new(Vec::new()));
    let seen = Arc::clone(&starts);
    let tool = Tool::new(name, move |(): (), _| {
        let mut starts = seen.lock().unwrap();
        starts.push(Instant::now());
        let count = starts.len();
        async move {
            sleep(Duration::from_millis(10)).await;
            if count > failures {
                Ok(format!("start {count}"))
            } else {
                Err(format!("failure {count}").into())
            }
        }
    });
    (tool.effect(Effect::Read).retry(retry), starts)
}

fn with(tools: impl IntoIterator<Item = Tool>) -> RunBuilder {
    let known = crate::runs::scene::toolbox();
    let tools = known.iter().cloned().chain(tools);
    Run::builder(Toolbox::new(tools).unwrap())
}

#[tokio::test(start_paused = true)]
async fn waits_between_the_starts_of_a_call() {
    for round in 0..100 {
        let retry = Retry::attempts(6);
        let retry = retry.waits(retry.first_wait, Duration::from_secs(3));
        let (tool, starts) = flaky("flaky", 100, retry);
        let mut run = with([tool])
            .policy(plaincall::Policy::default().concurrent(1))
            .build()
            .unwrap();
        let mut events = run.events();
        // A waiting call holds no slot: the other call runs during its first delay, which is at least 250 ms.
        let scene = "a=flaky b=sleep,200 c=sleep,1<a";
        let results = play(&mut run, &written(scene, false), 0).await;
        assert_eq!(errors(&results)[0], "failure 6");
        assert!(
            shown(&results).contains("b ok 10-210, c skipped"),
            "{round}: {}",
            shown(&results)
        );
        let starts = starts.lock().unwrap().clone();
        assert_eq!(starts.len(), 6);
        for (pair, whole) in starts.windows(2).zip([500, 1000, 2000, 3000, 3000]) {
            let ran = Duration::from_millis(10);
            let waited = (pair[1] - pair[0]).checked_sub(ran).unwrap();
            let (least, most) = (
                Duration::from_millis(whole / 2),
                Duration::from_millis(whole + 1),
            );
            assert!((least..=most).contains(&waited), "{waited:?} of {whole} ms");
        }
        run.close().await.unwrap();
        let mut texts = Vec::new();
        while let Some(event) = events.next().await {
            match event {
                RunEvent::Start(event) if event.call == 0 => {
                    texts.push(format!("start {}", event.attempt));
                }
                RunEvent::BackOff(event) => texts.push(event.error.to_string()),
                RunEvent::Retry(_) => texts.push("again".to_owned()),
                _ => {}
            }
        }
        let expected = (1..=5).flat_map(|n| {
            [
                format!("start {n}"),
                format!("failure {n}"),
                "again".to_owned(),
            ]
        });
        let expected: Vec<String> = expected.chain(["start 6".to_owned()]).collect();
        assert_eq!(texts, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn starts_that_help_and_starts_that_are_not_made() {
    let (tool, starts) = flaky("flaky", 2, Retry::attempts(3));
    let results = play(
        &mut with([tool]).build().unwrap(),
        &written("a=flaky b=before,0<a", false),
        0,
    )
    .await;
    assert_eq!(results[0].output.as_deref(), Some("start 3"));
    assert_eq!(results[1].output.as_deref(), Some("a=start 3;"));
    assert_eq!(starts.lock().unwrap().len(), 3);
    // A tool that writes must not request retries.
    let (tool, _) = flaky("flaky", 2, Retry::attempts(3));
    let error = Toolbox::new([tool.effect(Effect::Write)]).unwrap_err();
    assert!(error.to_string().contains("`flaky`"), "{error}");
    // A timeout is a failure like any other.
    let (tool, starts) = flaky("flaky", 0, Retry::attempts(2));
    let tool = tool.timeout(Duration::from_millis(5));
    let results = play(
        &mut with([tool]).build().unwrap(),
        &written("a=flaky", false),
        0,
    )
    .await;
    assert_eq!(
        (errors(&results), starts.lock().unwrap().len()),
        (vec!["timed out after 5 ms"], 2)
    );
    // Cancelled while it waits, or while it runs.
    for (at, end) in [
        (100, "while the call waited for a retry"),
        (5, "while the call was running"),
    ] {
        let (tool, starts) = flaky("flaky", 9, Retry::attempts(9));
        let mut run = with([tool]).build().unwrap();
        let mut turn = run.turn();
        turn.feed(written("a=flaky", false).concat());
        sleep(Duration::from_millis(at)).await;
        turn.cancel();
        let results = turn.finish(Stop::Natural).await;
        assert_eq!(errors(&results), [format!("the run was cancelled {end}")]);
        assert_eq!(results[0].times.ended, Duration::from_millis(at));
        run.close().await.unwrap();
        sleep(Duration::from_mins(10)).await;
        assert_eq!(starts.lock().unwrap().len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn dependents_see_failures() {
    let report = Tool::new("report", |(): (), context: Context| async move {
        let results = context.dependencies().iter();
        let texts =
            results.map(|one| format!("{} {} {} {:?}", one.id, one.status, one.output, one.error));
        Ok(texts.collect::<Vec<_>>().join(", "))
    });
    let fails =
        |name, dependents| sleeper(name, |_, _| Err("failed".into())).dependents(dependents);
    let tools = [
        report.effect(Effect::Read),
        fails("run", Dependents::Run),
        fails("guess", Dependents::Fallback("a guess".to_owned())),
    ];
    let mut run = with(tools).build().unwrap();
    let scene =
        "a=run,5 b=report<a c=guess,5 d=report<c e=fail,5 f=report<e,a g=guess,x h=report<g";
    let results = play(&mut run, &written(scene, false), 0).await;
    assert_eq!(
        shown(&results),
        "a error 0-5, b ok 5-5, c error 0-5, d ok 5-5, e error 0-5, f skipped -5, g rejected -0, h skipped -0"
    );
    assert_eq!(
        results[1].output.as_deref(),
        Some("a error  Some(\"failed\")")
    );
    assert_eq!(
        results[3].output.as_deref(),
        Some("c error a guess Some(\"failed\")")
    );
    // The model reads the error, not the fallback.
    assert_eq!(results[2].output, None);
    let results = play(&mut run, &written("i=report<c", false), 0).await;
    assert_eq!(
        results[0].output.as_deref(),
        Some("c error a guess Some(\"failed\")")
    );
}

#[tokio::test(start_paused = true)]
async fn a_tool_that_ends_the_run() {
    let finish = sleeper("finish", |ms, _| match ms {
        0..50 => Ok("goodbye".to_owned()),
        _ => Err("not yet".into()),
    });
    let mut run = with([finish.finishes()]).build().unwrap();
    let results = play(&mut run, &written("a=finish,50", false), 0).await;
    assert!(!results.is_last());
    let results = play(
        &mut run,
        &written("b=finish,5 c=sleep,20 d=sleep,1<b", false),
        0,
    )
    .await;
    assert!(results.all_ok() && results.is_last());
    let results = play(&mut run, &written("e=sleep,1 f=finish,1", false), 0).await;
    let error = "the run had already finished with a call of `finish` before the call was started";
    assert_eq!(errors(&results), [error; 2]);
    assert!(results.is_last());
}

#[tokio::test(start_paused = true)]
async fn writes_at_the_end_of_the_turn() {
    let check = async |stop: Stop, cancel: bool, expected: &str| {
        let policy = Policy::default().writes(Writes::AtEndOfTurn);
        let mut run = builder().gate(AllowAll).policy(policy).build().unwrap();
        let mut turn = run.turn();
        for piece in written(
            "a=write,10 b=sleep,5 c=sleep,5<a d=write,5<b e=alone,3",
            false,
        ) {
            turn.feed(piece);
            sleep(Duration::from_millis(10)).await;
        }
        if cancel {
            turn.cancel();
        }
        let results = turn.finish(stop).await;
        assert_eq!(shown(&results), expected, "{stop:?}");
        results
    };
    check(
        Stop::Natural,
        false,
        "a ok 50-60, b ok 10-15, c ok 60-65, d ok 50-55, e ok 40-43",
    )
    .await;
    for stop in [Stop::Broken, Stop::Length] {
        let results = check(
            stop,
            false,
            "a rejected -50, b ok 10-15, c skipped -50, d rejected -50, e ok 40-43",
        )
        .await;
        assert!(
            errors(&results)[0].contains("was truncated"),
            "{:?}",
            errors(&results)
        );
    }
    check(
        Stop::Natural,
        true,
        "a cancelled -50, b ok 10-15, c cancelled -50, d cancelled -50, e ok 40-43",
    )
    .await;
}

/// Decides by the id of the call, and records the ids.
#[derive(Clone, Default)]
struct Answers(Arc<Mutex<Vec<String>>>);

impl Gate for Answers {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        self.0.lock().unwrap().push(request.id.to_string());
        Box::pin(async move {
            let edit = |ms| -> Result<Decision, plaincall::BoxError> {
                let arguments = Arguments::from_pairs([("ms", ms)])?;
                Ok(Decision::Edit { arguments })
            };
            match request.id.split('_').next() {
                Some("deny") => Ok(Decision::deny("not now")),
                Some("edit") => edit("30"),
                Some("wrong") => edit("x"),
                Some("always") => Ok(Decision::Always),
                Some("silent") => std::future::pending().await,
                _ => Ok(Decision::Allow),
            }
        })
    }
}

#[tokio::test(start_paused = true)]
async fn answers_of_gates() {
    let answers = Answers::default();
    let policy = Policy::default().gate_timeout(Duration::from_secs(5));
    let mut run = builder()
        .gate(answers.clone())
        .policy(policy)
        .build()
        .unwrap();
    let scene = "deny=sleep,1 edit=sleep,1 wrong=sleep,1 silent=sleep,1 e=sleep,1<silent";
    let results = play(&mut run, &written(scene, false), 0).await;
    assert_eq!(
        shown(&results),
        "deny rejected -0, edit ok 0-30, wrong rejected -0, silent rejected -5000, e skipped -5000"
    );
    assert_eq!(
        errors(&results)[..3],
        [
            "not now",
            "the arguments were edited before the call ran, and are now invalid: invalid arguments: `ms`: expected an integer of at least 0, found `x`",
            "the call could not be approved: no answer within 5 s",
        ]
    );
    assert_eq!(results[1].output.as_deref(), Some("slept 30"));
    assert_eq!(
        results[1].note.as_deref(),
        Some("a user edited the arguments; the call ran with {\"ms\":30}")
    );
    answers.0.lock().unwrap().clear();
    // It applies to later calls of the tool, in later turns too, but to no other tool.
    for (scene, asked) in [
        (
            "always_1=write,1 b=write,1<always_1 c=look,1",
            vec!["always_1", "c"],
        ),
        ("d=write,1 e=look,1", vec!["e"]),
    ] {
        assert!(play(&mut run, &written(scene, false), 0).await.all_ok());
        let mut found = answers.0.lock().unwrap();
        assert_eq!(*found, asked);
        found.clear();
    }
}

#[tokio::test(start_paused = true)]
async fn reasons_of_gates_are_logged() {
    let approve = |request: Request| async move {
        Ok(match &*request.id {
            "a" => Decision::allow("it is Monday"),
            _ => Decision::Allow,
        })
    };
    let scenes = [
        (builder().gate(approve), [Some("it is Monday"), None]),
        (builder().gate(AllowAll), [Some("every call is allowed"); 2]),
        (builder(), [Some("idempotent tools need no approval"); 2]),
    ];
    for (builder, expected) in scenes {
        let mut run = builder.build().unwrap();
        let mut events = run.events();
        play(&mut run, &written("a=sleep,1 b=sleep,1", false), 0).await;
        drop(run);
        let mut reasons = Vec::new();
        while let Some(event) = events.next().await {
            if let RunEvent::Admitted(admission) = event {
                reasons.push(admission.reason);
            }
        }
        assert_eq!(reasons, expected.map(|reason| reason.map(Into::into)));
    }
}

#[tokio::test(start_paused = true)]
async fn rules_come_before_always_and_always_before_the_gate() {
    let answers = Answers::default();
    let rules = Rules::new([
        Rule::allow(["look"]),
        Rule::deny(["write"], "never so long").argument("ms", "9*"),
        Rule::ask(["write"]).argument("ms", "5"),
    ]);
    let mut run = builder()
        .gate(answers.clone())
        .rules(rules)
        .build()
        .unwrap();
    let mut events = run.events();
    let scene = "a=look,1 b=write,99<a always=write,1<a d=write,1<always e=write,5<always deny=write,5<always f=write,91<always";
    let results = play(&mut run, &written(scene, false), 0).await;
    assert_eq!(
        shown(&results),
        "a ok 0-1, b rejected -1, always ok 1-2, d ok 2-3, e ok 2-7, deny rejected -2, f rejected -2"
    );
    assert_eq!(*answers.0.lock().unwrap(), ["always", "e", "deny"]);
    assert_eq!(
        errors(&results),
        ["never so long", "not now", "never so long"]
    );
    drop(run);
    let mut by = Vec::new();
    while let Some(event) = events.next().await {
        if let RunEvent::Admitted(event) = event {
            by.push(format!("{} {:?} {}", event.id, event.by, event.always));
        }
    }
    assert_eq!(
        by,
        [
            "a Rule false",
            "always Gate true",
            "d Always false",
            "e Gate false"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn transformed_texts_reach_everyone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let report = sleeper("report", |_, _| Ok("the secret word".to_owned()));
    let spill = sleeper("spill", |_, _| Err("no secret".into()));
    let break_down = sleeper("break-down", |_, _| panic!("a secret broke it"));
    let builder = with([report, spill.dependents(Dependents::Run), break_down]);
    let builder = builder
        .log(Log::create(&path).unwrap())
        .transform(|name, text| match name {
            "before" => text.to_uppercase(),
            _ => text.replace("secret", "…"),
        });
    let mut run = builder.build().unwrap();
    let mut events = run.events();
    let results = play(
        &mut run,
        &written("a=report,1 b=spill,1 c=before,1<a,b d=break-down,1", false),
        0,
    )
    .await;
    let texts = |results: &TurnResults| {
        let one =
            |result: &plaincall::CallResult| result.output.clone().or_else(|| result.error.clone());
        results
            .iter()
            .filter_map(one)
            .map(|text| text.to_string())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        texts(&results),
        [
            "the … word",
            "no …",
            "A=THE … WORD;B=;",
            "the tool panicked: a … broke it"
        ]
    );
    run.close().await.unwrap();
    let mut events_as_json = String::new();
    while let Some(event) = events.next().await {
        events_as_json.push_str(&serde_json::to_string(&event).unwrap());
    }
    let log = std::fs::read_to_string(&path).unwrap();
    for record in [events_as_json, log] {
        assert!(
            record.contains("the … word") && !record.contains("secret"),
            "{record}"
        );
    }
}

#[tokio::test(start_paused = true)]
async fn long_results_are_cut_for_the_model_alone() {
    let long = sleeper("long", |ms, _| {
        Ok((0..ms).fold(String::new(), |all, line| format!("{all}line {line}\n")))
    });
    let count = Tool::new("count", |(): (), context: Context| async move {
        Ok(context.dependencies()[0].output.len().to_string())
    });
    let policy = Policy::default().result_limit(200);
    let tools = [long, count.effect(Effect::Read), Tool::read_result()];
    let mut run = with(tools).policy(policy).build().unwrap();
    let mut events = run.events();
    let results = play(
        &mut run,
        &written("a=long,100 b=count<a c=long,5", false),
        0,
    )
    .await;
    let output = results[0].output.as_deref().unwrap();
    let end = "line 25\n[output truncated: first 198 of 790 bytes; to continue, call `read_result` with `id` = a and `from` = 198]\n";
    assert!(
        output.starts_with("line 0\n") && output.ends_with(end),
        "{output}"
    );
    assert_eq!(
        (results[0].whole_bytes, results[2].whole_bytes),
        (Some(790), None)
    );
    assert_eq!(results[1].output.as_deref(), Some("790"));
    let texts = results.message(&Dialect::auto()).unwrap();
    assert!(texts.text().starts_with(
        "Result 1 of 3: tool long, id a, status ok\nOutput, truncated from 790 bytes:\n```\nline 0\n"
    ));
    let read = "!!!GADGET_START:read_result\n!!!ARG:id\na\n!!!ARG:from\n198\n!!!ARG:bytes\n16\n!!!GADGET_END\n";
    let results = play(&mut run, &[read.to_owned()], 0).await;
    let output = results[0].output.as_deref().unwrap();
    assert!(
        output.starts_with("line 26\nline 27\n[bytes 198 to 214 of 790"),
        "{output}"
    );
    run.close().await.unwrap();
    while let Some(event) = events.next().await {
        if let RunEvent::Result(result) = event
            && result.call == 0
        {
            assert_eq!(result.output.map(|output| output.len()), Some(790));
        }
    }
}

/// Without a gate, a call that a rule allows does not overtake one before it, however the reply arrives.
#[tokio::test]
async fn calls_without_a_gate_start_in_order() {
    let calls = ["a", "b"].map(|name| format!("!!!GADGET_START:{name}\n!!!GADGET_END\n"));
    let tool = |name| Tool::new(name, |(): (), _| async { Ok(String::new()) }).effect(Effect::Read);
    for chunks in [vec![calls.concat()], calls.to_vec()] {
        let mut run = Run::builder(Toolbox::new([tool("a"), tool("b")]).unwrap())
            .policy(Policy::default().concurrent(1))
            .rules(Rules::new([Rule::allow(["b"])]))
            .build()
            .unwrap();
        let mut events = run.events();
        let mut turn = run.turn();
        for chunk in chunks {
            turn.feed(chunk);
        }
        turn.finish(Stop::Natural).await;
        let mut started = Vec::new();
        while let Some(event) = events.try_next() {
            if let RunEvent::Start(start) = event {
                started.push(start.call);
            }
        }
        assert_eq!(started, [0, 1]);
    }
}
