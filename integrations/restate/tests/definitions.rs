//! Workers whose tools or version differ from those that a conversation was started with.

use std::time::{Duration, Instant};

use plaincall_restate::{Finished, QuestionKind, Status};
use serde_json::json;
use tokio::time::sleep;

use crate::server::{Api, PATIENCE, Server, free_port};
use crate::tools::{self, Change};
use crate::workers::Workers;

/// A write that takes a second, then another one.
const REPLY: &str = "!!!GADGET_START:append:a\n!!!ARG:step\n1\n!!!ARG:ms\n1000\n!!!GADGET_END
!!!GADGET_START:append:b:a\n!!!ARG:step\n2\n!!!ARG:ms\n0\n!!!GADGET_END\n";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn another_worker_runs_nothing_and_loses_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path()).await;
    let api = server.api.clone();
    let port = free_port();
    let mut workers = Workers::start(1, port, directory.path(), Change::None);
    api.register(port).await;
    for (number, change, problem) in [
        (
            1,
            Change::Missing,
            "the tool `append` no longer exists since the conversation was started",
        ),
        (
            2,
            Change::Schema,
            "the tool `append` has changed since the conversation was started",
        ),
        (
            3,
            Change::Version,
            "but the conversation was started by version",
        ),
        (
            4,
            Change::Settings,
            "this worker has another policy, other rules, another syntax",
        ),
        (
            5,
            Change::Added,
            "the tool `more` is new since the conversation was started",
        ),
    ] {
        let key = format!("talk-{number}");
        let before = tools::starts(directory.path()).len();
        let id = api.send(&key, "run", &json!({ "reply": REPLY })).await;
        until("a start", async || {
            tools::starts(directory.path()).len() > before
        })
        .await;
        drop(workers);

        // This worker reports the problem, and runs nothing.
        let other = Workers::start(1, port, directory.path(), change);
        until("a problem", async || {
            status(&api, &key)
                .await
                .is_some_and(|status| status.problem.is_some())
        })
        .await;
        let reported = status(&api, &key)
            .await
            .and_then(|status| status.problem)
            .unwrap();
        assert!(reported.contains(problem), "{reported}");
        assert!(reported.contains("this worker runs nothing"), "{reported}");
        until("a failure", async || {
            failure(&api, &id).await.contains(problem)
        })
        .await;
        sleep(Duration::from_millis(500)).await;
        assert_eq!(tools::starts(directory.path()).len(), before + 1);
        drop(other);

        // The right one continues.
        workers = Workers::start(1, port, directory.path(), Change::None);
        let is_asked = async || {
            let status = status(&api, &key).await;
            status.is_some_and(|status| {
                status
                    .questions
                    .iter()
                    .any(|one| one.kind == QuestionKind::Recovery)
            })
        };
        until("a question", is_asked).await;
        let answer = json!({ "question": 0, "answer": "done", "output": "by hand" });
        assert_eq!(api.call(&key, "answer", &answer).await.0, 200);
        until("an end", async || api.output(&id).await.is_some()).await;
        let (_, text) = api.output(&id).await.unwrap();
        let finished: Finished = serde_json::from_str(&text).unwrap();
        assert!(
            finished
                .results
                .iter()
                .all(|one| one.status == plaincall::Status::Ok),
            "{text}"
        );
        assert_eq!(tools::starts(directory.path()).len(), before + 2);
    }
    // A new reply of a conversation whose tools have changed since its last one is an error, and nothing is run.
    drop(workers);
    let before = tools::starts(directory.path()).len();
    let _other = Workers::start(1, port, directory.path(), Change::Missing);
    let (code, text) = api.call("talk-1", "run", &json!({ "reply": REPLY })).await;
    assert_eq!(code, 409, "{text}");
    assert!(
        text.contains("the tool `append` no longer exists"),
        "{text}"
    );
    assert_eq!(tools::starts(directory.path()).len(), before);
}

async fn until(what: &str, is_so: impl AsyncFn() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !is_so().await {
        assert!(Instant::now() < until, "it does not happen: {what}");
        sleep(Duration::from_millis(50)).await;
    }
}

/// Returns the status of a conversation, if a worker answers.
async fn status(api: &Api, key: &str) -> Option<Status> {
    let text = api.get(key, "status").await.ok()?;
    serde_json::from_str(&text).ok()
}

/// Returns the last failure of an invocation, as Restate reports it.
async fn failure(api: &Api, invocation: &str) -> String {
    let query = format!("SELECT last_failure FROM sys_invocation WHERE id = '{invocation}'");
    let rows = api.query(&query).await;
    let failure = rows.first().and_then(|row| row["last_failure"].as_str());
    failure.unwrap_or_default().to_owned()
}
