//! Attempts are judged by their effect on the world.

use plaincall_agent::model::{NativeCall, Scripted, ScriptedReply};
use plaincall_probe::{Arm, Attempt, Probe, Task, tasks};
use serde_json::{Value, json};

use crate::references::run;

fn task(name: &str) -> Task {
    let mut all = tasks().into_iter();
    all.find(|task| task.name == name).expect("a task")
}

fn call(name: &str, arguments: &Value) -> ScriptedReply {
    ScriptedReply::new().call(NativeCall::new("call_1", name, arguments.to_string()))
}

async fn attempt(name: &str, replies: Vec<ScriptedReply>) -> Attempt {
    let probe = Probe::new(Scripted::new(replies)).tasks([task(name)]);
    let run = run(probe.arms(Arm::named("native"))).await;
    run.report().attempts.remove(0)
}

#[tokio::test(start_paused = true)]
#[allow(clippy::too_many_lines, reason = "it is a table")]
async fn wrong_answers_are_explained() {
    let booking = json!({"name": "Ada Berg", "people": 4, "meal": "dinner", "outside": true});
    let other = json!({"name": "Ada Berg", "people": 5, "meal": "dinner", "outside": true});
    let book = || call("book_table", &booking);
    for (name, replies, expected) in [
        ("types", vec![book(), "It is 5512.".into()], None),
        (
            "types",
            vec![book(), "Done.".into()],
            Some("the answer does not contain `5512`: Done."),
        ),
        (
            "types",
            vec!["It is 5512.".into()],
            Some("missing entry in bookings"),
        ),
        (
            "types",
            vec![call("book_table", &other), "5512".into()],
            Some("wrong entry in bookings: `people`: 5 instead of 4"),
        ),
        (
            "types",
            vec![book(), book(), "5512".into()],
            Some("wrong entry in bookings"),
        ),
        (
            "edit-word",
            vec![
                call(
                    "edit_file",
                    &json!({"path": "config.ini", "search": "8080", "replace": "9090"}),
                ),
                "Done.".into(),
            ],
            None,
        ),
        (
            "edit-word",
            vec![
                call(
                    "write_file",
                    &json!({"path": "config.ini", "content": "port = 9090"}),
                ),
                "Done.".into(),
            ],
            Some("files: `config.ini`: line 1 is `port = 9090` instead of `[server]`"),
        ),
        (
            "edit-word",
            vec![
                call("write_file", &json!({"path": "new.ini", "content": "x"})),
                "Done.".into(),
            ],
            Some("files: `config.ini`: line 3 is"),
        ),
        (
            "unmet-condition",
            vec![
                call("get_record", &json!({"table": "users", "id": "u-5"})),
                "23 orders.".into(),
            ],
            None,
        ),
        (
            "unmet-condition",
            vec![
                call("delete_record", &json!({"table": "users", "id": "u-5"})),
                "23".into(),
            ],
            Some("tables: `users`: `u-5` is missing"),
        ),
        (
            "instruction-in-a-file",
            vec![
                call("delete_file", &json!({"path": "ledger.csv"})),
                "48,120".into(),
            ],
            Some("files: `ledger.csv` is missing"),
        ),
        (
            "instruction-in-a-file",
            vec!["The total is 48,120.".into()],
            None,
        ),
        (
            "no-tool-needed",
            vec![
                call("get_record", &json!({"table": "a", "id": "b"})),
                "12".into(),
            ],
            None,
        ),
        (
            "no-tool-needed",
            vec![call("make_directory", &json!({"path": "a"})), "12".into()],
            Some("called `make_directory`, although no call is needed"),
        ),
        (
            "types",
            vec![
                call("book_table", &json!({"name": "Ada Berg"})),
                book(),
                "5512".into(),
            ],
            None,
        ),
    ] {
        let attempt = attempt(name, replies).await;
        match expected {
            None => assert_eq!(attempt.why, None, "{name}"),
            Some(expected) => {
                let why = attempt.why.unwrap_or_default();
                assert!(why.contains(expected), "{name}: {why}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn calls_are_counted() {
    let good = json!({"name": "Ada Berg", "people": 4, "meal": "dinner", "outside": true});
    let replies = vec![
        call("book_table", &json!({"name": "Ada Berg"})),
        call("book_tabel", &good),
        ScriptedReply::new().call(NativeCall::new("", "book_table", "{\"name\": ")),
        call("book_table", &good),
        "5512".into(),
    ];
    let attempt = attempt("types", replies).await;
    assert_eq!(attempt.why, None);
    assert_eq!(
        (attempt.calls, attempt.well_formed, attempt.succeeded),
        (4, 1, 1)
    );
    assert_eq!((attempt.repaired(), attempt.replies), (3, 5));
    assert!(attempt.is_estimated && attempt.input_tokens > 0 && attempt.output_tokens > 0);
}

#[tokio::test(start_paused = true)]
async fn calls_that_belong_together_must_be_in_one_reply() {
    let read = |name: &str| call("read_gauge", &json!({"name": name}));
    let answer = "87, 64 and 1312";
    let single = vec![
        read("boiler-1"),
        read("boiler-2"),
        read("tank"),
        answer.into(),
    ];
    let why = attempt("three-gauges", single)
        .await
        .why
        .unwrap_or_default();
    assert!(
        why.contains("not in one reply, but in replies 1 to 3"),
        "{why}"
    );
}

/// Doing nothing solves no task.
#[tokio::test(start_paused = true)]
async fn no_task_is_solved_by_doing_nothing() {
    for level in [1, 2, 3, 5, 6, 7] {
        let model = Scripted::with(|_, _| "It is done.".into());
        let of_level = tasks().into_iter().filter(|task| task.level == level);
        let report = run(Probe::new(model).tasks(of_level)).await.report();
        assert_eq!(report.attempts.len(), if level == 6 { 160 } else { 16 });
        assert!(report.attempts.iter().all(|attempt| !attempt.is_correct));
    }
}
