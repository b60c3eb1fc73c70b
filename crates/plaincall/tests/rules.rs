//! Rules and long results in runs.
#![allow(clippy::unwrap_used, clippy::panic, reason = "tests")]

mod verdicts;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use plaincall::{
    Decision, Gate, Request, Run, RunBuilder, Stop, Tool, Toolbox, gate::GateFuture, read_tools,
};

const RULES: &str = r#"
[tools.show]
command = ["printf", "%s", "{path}"]
parameters = { path = "string" }
effect = "read"

[tools.save]
command = ["printf", "%s", "{path}"]
parameters = { path = "string", mode = "string?" }

[[rules]]
tools = "*"
arguments = { path = "**.key" }
verdict = "deny"
reason = "keys stay where they are"

[[rules]]
tools = "save"
arguments = { path = "out/**" }
verdict = "allow"

[[rules]]
tools = "*"
arguments = { path = "/**" }
verdict = "ask"
"#;

/// Always gives the same answer, and counts the questions.
struct Counting {
    asked: Arc<AtomicU32>,
    decision: Decision,
}

impl Gate for Counting {
    fn decide<'a>(&'a self, _: &'a Request) -> GateFuture<'a> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        Box::pin(async { Ok(self.decision.clone()) })
    }
}

fn builder(file: &str, more: Option<Tool>) -> RunBuilder {
    let file = read_tools(file, "/home/me/tools.toml").unwrap_or_else(|error| panic!("{error}"));
    let tools = file.tools.into_iter().chain(more);
    Run::builder(Toolbox::new(tools).unwrap())
        .policy(file.policy)
        .rules(file.rules)
        .directory_in(std::env::temp_dir())
        .environment([("PATH", "/usr/local/bin:/usr/bin:/bin")])
}

/// Runs calls, `tool,path` each, and compares their status and the reason for the model.
async fn check(decision: Decision, calls: &[(&str, &str)], asked: u32) {
    let count = Arc::new(AtomicU32::new(0));
    let gate = Counting {
        asked: Arc::clone(&count),
        decision,
    };
    let mut run = builder(RULES, None).gate(gate).build().unwrap();
    for (call, expected) in calls {
        let (tool, path) = call.split_once(',').unwrap();
        let mut turn = run.turn();
        turn.feed(format!(
            "!!!GADGET_START:{tool}\n!!!ARG:path\n{path}\n!!!GADGET_END\n"
        ));
        let results = turn.finish(Stop::Natural).await;
        let result = &results[0];
        let found = format!(
            "{} {}",
            result.status.name(),
            result.error.as_deref().unwrap_or_default()
        );
        assert!(
            found.starts_with(expected.split(':').next().unwrap())
                && found.contains(expected.split(':').nth(1).unwrap_or_default()),
            "{call}: {found}"
        );
    }
    assert_eq!(count.load(Ordering::SeqCst), asked, "{calls:?}");
}

#[tokio::test]
async fn rules_come_before_the_gate() {
    let keys = "rejected:keys stay where they are";
    check(
        Decision::Allow,
        &[
            ("show,a", "ok"),
            ("show,a.key", keys),
            ("save,out/b.key", keys),
            ("save,out/b", "ok"),
        ],
        1,
    )
    .await;
    check(
        Decision::deny("not today"),
        &[
            ("save,out/b", "ok"),
            ("save,out/../b", "rejected:not today"),
            ("save,b.key/.", keys),
        ],
        1,
    )
    .await;
}

#[tokio::test]
async fn a_rule_that_asks_overrides_an_earlier_answer() {
    check(
        Decision::Always,
        &[
            ("show,a", "ok"),
            ("show,b", "ok"),
            ("show,/a", "ok"),
            ("show,/b", "ok"),
            ("show,../b", "ok"),
            ("show,a.key", "rejected"),
        ],
        4,
    )
    .await;
}

/// The model follows the notes of truncated results until it has read all of one.
#[tokio::test]
async fn long_results_can_be_read_on() {
    let file = "
    [tools.count]
    shell = 'seq 1 40000'
    effect = 'read'
    ";
    let mut run = builder(file, Some(Tool::read_result())).build().unwrap();
    let mut turn = run.turn();
    turn.feed("!!!GADGET_START:count:long\n!!!GADGET_END\n");
    let results = turn.finish(Stop::Natural).await;
    let lines: Vec<String> = (1..=40_000).map(|number| number.to_string()).collect();
    let whole = lines.join("\n") + "\n";
    assert_eq!(results[0].whole_bytes, Some(whole.len() as u64));
    let mut shown = results[0].output.clone().unwrap();
    let mut read = String::new();
    let mut pieces = 0;
    loop {
        pieces += 1;
        let (text, note) = shown.rsplit_once('[').unwrap();
        read.push_str(text);
        let Some((_, from)) = note.split_once("`from` = ") else {
            break;
        };
        let from = from.split([' ', ']']).next().unwrap();
        assert_eq!(from, read.len().to_string(), "{note}");
        let mut turn = run.turn();
        turn.feed(format!(
            "!!!GADGET_START:read_result\n!!!ARG:id\nlong\n!!!ARG:from\n{from}\n!!!GADGET_END\n"
        ));
        let results = turn.finish(Stop::Natural).await;
        assert_eq!(results[0].error, None);
        shown = results[0].output.clone().unwrap();
        assert!(shown.len() <= 64 << 10);
    }
    assert_eq!(read, whole);
    assert!(pieces > 3, "{pieces}");
}
