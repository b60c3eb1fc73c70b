//! Probes of models that are good at some styles, at none, and out of reach.

use std::time::Duration;

use plaincall::call::ToolSpec;
use plaincall::call::{
    Untrusted,
    history::{PastCall, TurnPart, history},
};
use plaincall::syntax::{Escaper, Syntax};
use plaincall_agent::model::{
    ModelError, ModelErrorKind, ModelRequest, Role, Scripted, ScriptedReply,
};
use plaincall_agent::plaincall;
use plaincall_agent::probe::{Probe, ProbeReport, Probing, Style, Task, tasks};
use serde::Deserialize;
use serde_json::Value;

/// The contents of the task file.
#[derive(Deserialize)]
struct Known {
    tasks: Vec<KnownTask>,
    tools: Vec<KnownTool>,
}

#[derive(Deserialize)]
struct KnownTask {
    name: String,
    question: String,
    tools: Vec<String>,
    #[serde(default)]
    steps: Vec<Step>,
    #[serde(default)]
    answer: Vec<String>,
}

#[derive(Deserialize)]
struct Step {
    tool: String,
    arguments: Value,
    #[serde(default)]
    after: Vec<usize>,
}

#[derive(Deserialize)]
struct KnownTool {
    name: String,
    parameters: Value,
    positional: Option<Vec<String>>,
    body: Option<String>,
}

impl Known {
    fn spec(&self, name: &str) -> ToolSpec {
        let tool = self
            .tools
            .iter()
            .find(|tool| tool.name == name)
            .expect("a tool");
        let spec = ToolSpec::new(name).parameters_from_schema(&tool.parameters);
        let mut spec = spec.expect("a schema");
        spec.positional.clone_from(&tool.positional);
        spec.body.clone_from(&tool.body);
        spec
    }
}

/// The file, with this end marker in its texts.
fn known(end_marker: &str) -> Known {
    let file = include_str!("../../src/probe/tasks.json").replace("{MARKER}", end_marker);
    serde_json::from_str(&file).expect("the file can be read")
}

fn end_marker(style: &Style) -> String {
    let syntax = if style.is_emoji {
        Syntax::Emoji
    } else {
        Syntax::Block
    };
    style.dialect().end_marker(syntax)
}

/// The reply of a model that does what is asked for in this style, if it is asked in it.
fn good(style: &Style, request: &ModelRequest) -> Option<String> {
    let dialect = style.dialect();
    let message = |role| {
        let messages = request.messages.iter();
        messages.filter(move |message| message.role == role)
    };
    // The prompt teaches the end marker of this style, and no longer one that begins with it.
    let taught = &message(Role::System).next()?.text;
    let end = end_marker(style);
    let others = Style::all().into_iter().map(|other| end_marker(&other));
    let mut longer = others.filter(|other| *other != end && other.starts_with(&end));
    let is_taught = taught.contains(&end) && !longer.any(|other| taught.contains(&other));
    let question = &message(Role::User).next()?.text;
    let escaper = Escaper::new(&dialect).expect("a dialect");
    let known = known(&end);
    let mut asked = known
        .tasks
        .iter()
        .filter(|task| question.contains(&*escaper.escape(&task.question)));
    let task = asked.next().filter(|_| is_taught)?;
    // Each reply has the calls that can be made then.
    let replies = message(Role::Assistant).count();
    let depth = |index: usize| {
        let mut depth = 0;
        let mut at = index;
        while let Some(before) = task.steps[at].after.first() {
            (at, depth) = (*before, depth + 1);
        }
        depth
    };
    let steps = (0..task.steps.len()).filter(|index| depth(*index) == replies);
    let calls: Vec<TurnPart<'_>> = steps
        .map(|index| {
            let step = &task.steps[index];
            let arguments = step.arguments.as_object().expect("an object");
            TurnPart::Called(PastCall::new(Untrusted::new(&*step.tool), arguments))
        })
        .collect();
    if calls.is_empty() {
        return Some(format!("Done: {}.", task.answer.join(", ")));
    }
    let specs: Vec<ToolSpec> = task.tools.iter().map(|name| known.spec(name)).collect();
    let find = |name: &str| specs.iter().find(|spec| spec.name == name);
    let written = history(&calls, &dialect, find);
    Some(written.expect("a dialect").into_text())
}

/// A model that is good in this style, and in others writes something else.
fn only(name: &'static str, other: fn(u32) -> ScriptedReply) -> Scripted {
    let mut styles = Style::all();
    styles.retain(|style| style.name == name);
    Scripted::with(move |number, request| {
        let number = u32::try_from(number).expect("few");
        match styles.iter().find_map(|style| good(style, request)) {
            Some(reply) => reply.into(),
            None => other(number),
        }
    })
}

fn task(name: &str) -> Vec<Task> {
    let mut found = tasks();
    found.retain(|task| task.name == name);
    found
}

async fn probed(probe: Probe) -> Probing {
    let mut probing = probe.begin();
    while probing.next().await.is_some() {}
    probing
}

fn rights(report: &ProbeReport) -> Vec<(&'static str, u32, u32)> {
    let styles = report.styles.iter();
    styles
        .map(|style| (style.style.name, style.right, style.trials))
        .collect()
}

#[test]
fn the_tasks_are_twelve() {
    let known = known("");
    assert_eq!((known.tasks.len(), tasks().len()), (12, 12));
    for task in &known.tasks {
        assert!(
            tasks()
                .iter()
                .filter(|other| other.name == task.name)
                .count()
                == 1
        );
        for tool in &task.tools {
            assert!(
                known.tools.iter().any(|other| other.name == *tool),
                "{tool}"
            );
        }
        for step in &task.steps {
            assert!(task.tools.contains(&step.tool));
            assert!(step.after.iter().all(|before| *before < task.steps.len()));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn each_task_can_be_done_in_each_style() {
    let styles = Style::all();
    let model = Scripted::with(move |_, request| {
        let mut replies = styles.iter().filter_map(|style| good(style, request));
        let reply = replies.next().expect("one of the styles");
        assert!(replies.next().is_none());
        reply.into()
    });
    let report = probed(Probe::new(model)).await.report();
    let wrong: Vec<_> = report
        .trials
        .iter()
        .filter(|trial| !trial.is_right)
        .collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    assert_eq!(report.trials.len(), 60);
    for style in &report.styles {
        assert_eq!((style.right, style.trials, style.repaired), (12, 12, 0));
        assert_eq!((style.calls, style.tasks.len()), (style.well_formed, 12));
    }
}

#[tokio::test(start_paused = true)]
async fn the_style_in_which_a_model_is_good_is_recommended() {
    for name in ["emoji", "block-keyed"] {
        let model = only(name, |_| "I have done it, with 12 others.".into());
        let easy = tasks().into_iter().take(3);
        let report = probed(Probe::new(model).tasks(easy)).await.report();
        assert_eq!(report.recommended, Some(name));
        assert_eq!(report.best().map(|best| best.right), Some(3));
        // The task without a call is right everywhere.
        for (other, right, trials) in rights(&report) {
            assert_eq!(
                (right, trials),
                (if other == name { 3 } else { 1 }, 3),
                "{other}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn the_same_model_the_same_report_however_many_at_once() {
    let styles = || Style::all().into_iter().filter(|style| !style.is_emoji);
    let model = || only("block-angle", |_| "I cannot.".into());
    let probe = |concurrent| {
        Probe::new(model())
            .styles(styles())
            .tasks(tasks().into_iter().skip(7).take(3))
            .repeat(2)
            .concurrent(concurrent)
    };
    let one = probed(probe(1)).await;
    let many = probed(probe(7)).await;
    assert_eq!((one.total(), one.error()), (18, None));
    assert_eq!(one.report(), many.report());
}

#[tokio::test(start_paused = true)]
async fn errors_are_described() {
    let task = |name: &str| {
        tasks()
            .into_iter()
            .filter(move |task| task.name == name)
            .collect::<Vec<_>>()
    };
    let style = Style::all().remove(0);
    let call = |tool: &str, arguments: serde_json::Value| {
        let arguments = arguments.as_object().expect("an object").clone();
        let call = PastCall::new(Untrusted::new(tool.to_owned()), &arguments);
        let parts = [TurnPart::Called(call)];
        let spec = known("").spec(tool);
        let written = history(&parts, &style.dialect(), |_| Some(&spec));
        written.expect("a dialect").into_text()
    };
    let oslo = || call("weather", serde_json::json!({"city": "Oslo"}));
    let cairo = || call("weather", serde_json::json!({"city": "Cairo"}));
    let lima = || call("weather", serde_json::json!({"city": "Lima"}));
    let file = |content: &str| {
        call(
            "write_file",
            serde_json::json!({"path": "fizz.py", "content": content}),
        )
    };
    for (name, replies, expected) in [
        ("one-call", vec![oslo(), "It has 7 degrees.".into()], None),
        (
            "one-call",
            vec!["It has 7 degrees.".into()],
            Some("did not call `weather` with {\"city\":\"Oslo\"}"),
        ),
        (
            "one-call",
            vec![oslo(), "It is cold.".into()],
            Some("the answer does not contain `7`: It is cold."),
        ),
        // A tool that only reads may be asked once more.
        (
            "one-call",
            vec![lima(), oslo(), "It has 7 degrees.".into()],
            None,
        ),
        ("no-call", vec!["12".into()], None),
        (
            "no-call",
            vec![oslo(), "12".into()],
            Some("called `weather`, where no call is needed"),
        ),
        (
            "code",
            vec![file("print()"), "Done.".into()],
            Some("called `write_file` with {\"path\":\"fizz.py\",\"content\":\"print()\"}"),
        ),
        (
            "parallel",
            vec![oslo() + &cairo() + &lima(), "7, 31 and 19".into()],
            None,
        ),
        (
            "parallel",
            vec![oslo(), cairo() + &lima(), "7, 31 and 19".into()],
            Some("did not write all calls in one reply"),
        ),
    ] {
        let model = Scripted::new(replies);
        let probe = Probe::new(model).tasks(task(name)).styles([style.clone()]);
        let report = probed(probe).await.report();
        assert_eq!(report.trials.len(), 1);
        assert_eq!(report.trials[0].why.as_deref(), expected, "{name}");
        // An answer without a call is no evidence about calls.
        let is_good = expected.is_none() && name != "no-call";
        assert_eq!(report.recommended.is_some(), is_good);
    }
    // What is done right in the end is right, and counted as repaired.
    let unknown = oslo().replace("Oslo", "").replace("city", "town");
    let model = Scripted::new([unknown, oslo(), "It has 7 degrees.".to_owned()]);
    let probe = Probe::new(model)
        .tasks(task("one-call"))
        .styles([style.clone()]);
    let report = probed(probe).await.report();
    let found = &report.styles[0];
    assert_eq!(
        (found.right, found.repaired, found.calls, found.well_formed),
        (1, 1, 2, 1),
        "{:?}",
        report.trials
    );
}

#[tokio::test(start_paused = true)]
async fn a_model_that_cannot_be_asked() {
    for (kind, trials, asked) in [
        (ModelErrorKind::Refused, 1, 1),
        (ModelErrorKind::Connect, 1, 5),
        (ModelErrorKind::Busy, 3, 15),
    ] {
        let model = Scripted::with(move |_, _| ScriptedReply::error(ModelError::new(kind, "no")));
        let probing = probed(Probe::new(model.clone())).await;
        assert_eq!(probing.error().map(|error| error.kind), Some(kind));
        let report = probing.report();
        assert_eq!((report.trials.len(), report.recommended), (trials, None));
        assert!(report.trials.iter().all(|trial| trial.is_server_failure));
        assert_eq!(model.requests().len(), asked);
    }
    // A failure now and then is one of the model's.
    let model = Scripted::with(|number, _| match number % 2 {
        0 => ScriptedReply::text("1").fail(ModelError::new(ModelErrorKind::Broken, "no")),
        _ => "12".into(),
    });
    let probing = probed(Probe::new(model).tasks(task("no-call")).repeat(4)).await;
    assert_eq!((probing.report().trials.len(), probing.error()), (20, None));
}

#[tokio::test(start_paused = true)]
async fn what_never_ends_does() {
    let model = Scripted::with(|_, _| ScriptedReply::text("Let me think.").stall());
    let begin = tokio::time::Instant::now();
    let probe = Probe::new(model)
        .tasks(task("code"))
        .time(Duration::from_secs(9))
        .concurrent(60);
    let report = probed(probe).await.report();
    assert!(begin.elapsed() < Duration::from_secs(20));
    assert_eq!((report.trials.len(), report.recommended), (5, None));
    // A cancelled probe keeps what it has measured.
    let model = only("emoji", |_| ScriptedReply::new().stall());
    let mut probing = Probe::new(model.clone()).begin();
    for _ in 0..3 {
        let first = tokio::time::timeout(Duration::from_secs(1), probing.next()).await;
        assert!(first.is_err());
    }
    drop(probing);
}

/// A model that forgets end markers, and otherwise does what is asked for.
#[tokio::test(start_paused = true)]
async fn who_forgets_end_markers_is_found_out() {
    for (is_forgetful, expected) in [(true, true), (false, false)] {
        let mut styles = Style::all();
        styles.truncate(1);
        let known = styles.clone();
        let model = Scripted::with(move |_, request| {
            let style = &known[0];
            let reply = good(style, request).expect("the style");
            if is_forgetful {
                reply
                    .replace(&format!("{}\n", end_marker(style)), "")
                    .into()
            } else {
                reply.into()
            }
        });
        let report = probed(Probe::new(model).styles(styles)).await.report();
        let best = report.best().expect("a style");
        assert_eq!(best.forgets_end_markers(), expected, "{report:?}");
        assert_eq!(best.unclosed > 0, expected, "{best:?}");
    }
}
