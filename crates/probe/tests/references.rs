//! The comparison identifies the arm that each reference model was made for.

use std::time::Duration;

use plaincall_agent::model::{NativeMessage, Scripted, ScriptedReply};
use plaincall_probe::{Arm, Probe, Probing, Reference, Report, Task, Verdict, tasks};

pub(crate) async fn run(probe: Probe) -> Probing {
    let mut run = probe.begin();
    while run.next().await.is_some() {}
    run
}

/// The hard tasks.
pub(crate) fn hard() -> impl Iterator<Item = Task> {
    tasks().into_iter().filter(|task| task.level == 6)
}

fn share(report: &Report, arm: &str) -> (u32, u32) {
    let arm = report.arm(arm).expect("an arm");
    (arm.correct, arm.attempts)
}

pub(crate) fn named<const COUNT: usize>(names: [&str; COUNT]) -> [Arm; COUNT] {
    names.map(|name| Arm::named(name).expect("an arm"))
}

#[tokio::test(start_paused = true)]
async fn each_model_is_best_in_the_arm_that_it_was_made_for() {
    for (name, expected) in [
        ("native", Verdict::KeepNative),
        (
            "json",
            Verdict::Json {
                arm: "json".to_owned(),
            },
        ),
        ("block", used("block")),
        ("emoji", used("emoji")),
    ] {
        let model = Reference::named(name).expect("a model");
        let run = run(Probe::new(model)).await;
        let report = run.report();
        assert!(run.is_complete() && run.error().is_none());
        assert!(report.attempts.len() < 64 * 4, "no arm stopped early");
        let wrong = report.attempts.iter();
        let wrong = wrong.filter(|attempt| attempt.arm == name && !attempt.is_correct);
        let wrong: Vec<_> = wrong.map(|attempt| (&attempt.task, &attempt.why)).collect();
        assert!(wrong.is_empty(), "{name}: {wrong:?}");
        assert_eq!(report.verdict, expected, "{name}");
        for arm in Arm::all().into_iter().filter(|arm| arm.is_default) {
            let (correct, attempts) = share(&report, arm.name);
            assert!(correct <= attempts);
            let is_own = arm.name == name;
            assert_eq!(correct == 64, is_own, "{name} in {}", arm.name);
            let stopped = report.arm(arm.name).and_then(|arm| arm.stopped);
            assert!(stopped.is_none() || !is_own && attempts < 64, "{name}");
        }
    }
}

fn used(arm: &str) -> Verdict {
    Verdict::Use {
        arm: arm.to_owned(),
        same_as: None,
    }
}

/// The default arms, and `block-grammar`.
fn with_grammar() -> impl Iterator<Item = Arm> {
    let arms = Arm::all().into_iter();
    arms.filter(|arm| arm.is_default || arm.name == "block-grammar")
}

#[tokio::test(start_paused = true)]
async fn a_model_that_needs_a_grammar_is_best_with_one() {
    let model = Reference::named("block-grammar").expect("a model");
    let report = run(Probe::new(model).arms(with_grammar())).await.report();
    let wrong = report.attempts.iter();
    let wrong = wrong.filter(|attempt| attempt.arm == "block-grammar" && !attempt.is_correct);
    let wrong: Vec<_> = wrong.map(|attempt| (&attempt.task, &attempt.why)).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(report.verdict, used("block-grammar"));
    for arm in with_grammar() {
        let (correct, _) = share(&report, arm.name);
        assert_eq!(correct == 64, arm.has_grammar(), "{}", arm.name);
    }
    let all = |report: &Report| {
        report
            .arm("block-grammar")
            .map(|arm| (arm.calls, arm.well_formed))
    };
    let (calls, well_formed) = all(&report).expect("an arm");
    assert_eq!(calls, well_formed);

    // Others get no grammar.
    let model = Reference::named("block").expect("a model");
    let report = run(Probe::new(model).arms(with_grammar())).await.report();
    let arm = report.arm("block-grammar").expect("an arm");
    let why = arm.unavailable.as_deref();
    assert_eq!(
        (arm.attempts, why),
        (0, Some("no grammar constrains this model"))
    );
    assert_eq!(report.verdict, used("block"));
}

/// A model that does not escape strings fails where quotation marks and backslashes matter, and only there.
#[tokio::test(start_paused = true)]
async fn the_tasks_separate_what_models_can_and_cannot() {
    let model = Reference::named("block").expect("a model");
    let arms = [
        Arm::named("json").expect("an arm"),
        Arm::named("native").expect("an arm"),
    ];
    let report = run(Probe::new(model).arms(arms).tasks(hard()))
        .await
        .report();
    for attempt in &report.attempts {
        let is_hard = [
            "rules-file",
            "long-file",
            "sql",
            "pattern",
            "edit-quotes",
            "fenced-file",
        ];
        let is_easy = ["types", "nested", "look-up", "chain"];
        let task = attempt.task.as_str();
        assert!(
            !is_hard.contains(&task) || !attempt.is_correct,
            "{} {task}",
            attempt.arm
        );
        assert!(
            !is_easy.contains(&task) || attempt.is_correct,
            "{} {task}: {:?}",
            attempt.arm,
            attempt.why
        );
    }
}

/// With each arm: natively, the tools are fields of the request instead of text.
#[tokio::test(start_paused = true)]
async fn the_agent_sized_prompt_has_24_tools_and_60_kilobytes() {
    let task = tasks().into_iter().find(|task| task.name == "agent-nested");
    let mut native_tools = Vec::new();
    for arm in Arm::all().into_iter().filter(|arm| !arm.has_grammar()) {
        let model = Scripted::with(|_, _| "I cannot.".into());
        let probe = Probe::new(model.clone()).arms([arm]).tasks(task.clone());
        run(probe).await;
        let request = model.requests().into_iter().next().expect("a request");
        let mut size: usize = request.messages.iter().map(|m| m.text.len()).sum();
        if let Some(native) = &request.native {
            for message in &native.messages {
                if let NativeMessage::System(text) | NativeMessage::User(text) = message {
                    size += text.len();
                }
            }
            for tool in native.tools.iter() {
                size += tool.name.len() + tool.description.len();
                size += tool.parameters.to_string().len();
                native_tools.push(tool.name.clone());
            }
            assert_eq!(native_tools.len(), 24);
        } else {
            // Native calls are the first arm.
            assert_eq!(native_tools.len(), 24);
            let system = &request.messages.first().expect("a message").text;
            for name in &native_tools {
                assert!(system.contains(name), "{}: {name}", arm.name);
            }
        }
        assert_eq!(request.native.is_some(), arm.is_native());
        assert!((55_000..70_000).contains(&size), "{}: {size}", arm.name);
    }
}

/// Keyed and other markers are taught, too.
#[tokio::test(start_paused = true)]
async fn no_model_confuses_markers() {
    let model = Reference::named("block").expect("a model");
    let arms = named(["block-keyed", "block-angle"]);
    let easy = tasks().into_iter().take(4);
    let report = run(Probe::new(model).arms(arms).tasks(easy)).await.report();
    assert_eq!(report.verdict, Verdict::Nothing);
}

#[tokio::test(start_paused = true)]
async fn concurrency_does_not_change_the_report() {
    let probe = |concurrent| {
        let model = Reference::named("emoji").expect("a model");
        let some = hard().skip(7).take(4);
        Probe::new(model)
            .tasks(some)
            .repeat(2)
            .concurrent(concurrent)
    };
    let (one, many) = (run(probe(1)).await.report(), run(probe(7)).await.report());
    assert_eq!(one.attempts.len(), 32);
    assert_eq!(one, many);
}

/// A model that calls the only tool after an example, and otherwise only talks.
#[tokio::test(start_paused = true)]
async fn arms_with_examples_help_a_model_that_solves_nothing() {
    let model = Scripted::with(|_, request| {
        let texts = || request.messages.iter().map(|message| &*message.text);
        let asked = |text: &str| texts().any(|message| message.contains(text));
        let is_shown = asked("Throw away temp.log.");
        match texts().next_back().unwrap_or_default() {
            last if last.contains("deleted") => "It is gone.".into(),
            _ if is_shown && asked("I do not need draft-2.txt") => {
                "🛠️[delete_file draft-2.txt]\n🛠️[/end]\n".into()
            }
            _ => "I would do that.".into(),
        }
    });
    let probe = Probe::new(model.clone()).arms(named(["block", "emoji"]));
    let run_of = run(probe.reserve(named(["block-examples", "emoji-examples"]))).await;
    let report = run_of.report();
    // It solves a quarter of the first level, and nothing of the second.
    let found = |name: &str| share(&report, name);
    assert_eq!((found("emoji"), found("emoji-examples")), ((0, 8), (1, 8)));
    assert_eq!(report.verdict, used("emoji-examples"));
    assert!(run_of.is_complete());
    // Within a budget, no task with the agent-sized prompt is among them.
    let quick = Scripted::with(|_, _| {
        ScriptedReply::new()
            .pause(Duration::from_secs(1))
            .text("No.")
    });
    let quick = Probe::new(quick)
        .arms(named(["block", "emoji"]))
        .budget(Duration::from_secs(100));
    let report = run(quick.reserve(named(["block-examples", "emoji-examples"])))
        .await
        .report();
    assert!(report.attempts.len() >= 16, "{}", report.attempts.len());
    let mut tried = report.attempts.iter().map(|attempt| &attempt.task);
    assert!(tried.all(|task| !task.starts_with("agent-")));
    // Without need, they are not tried.
    let able = Probe::new(Reference::named("emoji").expect("a model"));
    let able = able.tasks(tasks().into_iter().take(8));
    let report = run(able.reserve(named(["block-examples", "emoji-examples"])))
        .await
        .report();
    assert!(report.arm("emoji-examples").is_none());
}
