//! Conversations with the program `plaincall-restate` and a tools file.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use plaincall::Status::{Cancelled, Error, Ok, Rejected};
use plaincall::log::read_log;
use plaincall_restate::{Finished, QuestionKind};
use plaincall_testkit::model_server::{ModelServer, Script, Then};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::server::{PATIENCE, Server, dependent, free_port};
use crate::setting::{Killed, Setting, TOOLS, changed, configured, put, statuses, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_person_answers_over_http() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let reply = format!("Now.\n{}{}", put("a", "one"), put("b", "two"));
    let id = api.send("talk", "run", &json!({ "reply": reply })).await;
    let question = setting.question("talk", QuestionKind::Approval).await;
    assert_eq!(question.arguments, json!({ "line": "one" }));
    for (answer, status, message) in [
        (
            json!({ "question": 7, "answer": "allow" }),
            404,
            "there is no question 7; the conversation has had 2 so far",
        ),
        (
            json!({ "question": 0, "answer": "done" }),
            409,
            "question 0 waits for one of `allow`",
        ),
        (
            json!({ "question": 0, "answer": "deny", "raeson": "no" }),
            400,
            "unknown field `raeson` of the answer",
        ),
        (
            json!({ "question": 0, "answer": "allow", "reason": "yes" }),
            400,
            "unknown field `reason` of the answer",
        ),
        (
            json!({ "question": 0, "answer": "edit", "arguments": { "lnie": "three" } }),
            400,
            "question 0 stays open",
        ),
    ] {
        let (code, text) = api.call("talk", "answer", &answer).await;
        assert_eq!(code, status, "{text}");
        assert!(text.contains(message), "{text}");
    }
    let edit = json!({ "question": 0, "answer": "edit", "arguments": { "line": "three" } });
    setting.answer("talk", edit).await;
    setting
        .answer(
            "talk",
            json!({ "question": 1, "answer": "deny", "reason": "not now" }),
        )
        .await;
    let finished = setting.finished(&id).await;
    assert_eq!(statuses(&finished), [Ok, Rejected]);
    assert_eq!(finished.results[1].error.as_deref(), Some("not now"));
    let key = finished.results[0].output.as_deref().unwrap();
    assert!(key.starts_with("talk/") && key.ends_with("/0\n"), "{key}");
    assert_eq!(setting.written(), "three\n");
    // An answer that comes twice reaches no other question.
    let again = json!({ "question": 0, "answer": "allow" });
    let (code, text) = api.call("talk", "answer", &again).await;
    assert_eq!(code, 409, "{text}");
    assert!(text.contains("question 0 is closed"), "{text}");
    assert_eq!(finished.text.trim(), "Now.");

    // The server shows which call an invocation belongs to.
    let rows = api
        .query("SELECT name FROM sys_journal WHERE name <> ''")
        .await;
    let names: Vec<_> = rows.iter().filter_map(|row| row["name"].as_str()).collect();
    assert_eq!(names, ["put a: start", "put a: end"]);

    // The record is a log, which the command shows.
    let lines = api.get("talk", "record").await.unwrap();
    assert!(read_log(lines.as_bytes()).unwrap().torn.is_none());
    let text = shown(&lines);
    assert!(text.contains("not now") && text.contains("three"), "{text}");
}

/// Returns a record as `plaincall show` prints it.
fn shown(lines: &str) -> String {
    let mut show = plaincall(&["show", "-"]).spawn().unwrap();
    let mut input = show.stdin.take().unwrap();
    input.write_all(lines.as_bytes()).unwrap();
    drop(input);
    let shown = show.wait_with_output().unwrap();
    assert!(shown.status.success());
    String::from_utf8(shown.stdout).unwrap()
}

/// Returns the command `plaincall`, with pipes.
fn plaincall(arguments: &[&str]) -> Command {
    let program = std::env::var_os("PLAINCALL");
    let program = program.expect("PLAINCALL is the path of plaincall; run `cargo xtask restate`");
    let mut command = dependent(program);
    command.args(arguments).stdin(Stdio::piped());
    command.stdout(Stdio::piped()).stderr(Stdio::null());
    command
}

/// The replies of the tutorial's agent, from a model server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_model_server_is_asked_until_it_answers() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/agent");
    let tools = example.join("tools.toml");
    let address = format!("127.0.0.1:{}", free_port());
    let replies = format!("replay:{}", example.join("replies.jsonl").display());
    let mut model = plaincall(&["serve", "--listen", &address, "--upstream", &replies]);
    let _model = Killed(model.stdout(Stdio::null()).spawn().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let server = Server::start(directory.path()).await;
    let port = free_port();
    let mut worker = dependent(env!("CARGO_BIN_EXE_plaincall-restate"));
    let url = format!("http://{address}/v1");
    let model = configured(
        directory.path(),
        &format!("[models.any]\nurl = '{url}'"),
        "any",
    );
    worker.arg("--tools").arg(tools).args(model);
    worker.arg("--listen").arg(format!("127.0.0.1:{port}"));
    let _worker = Killed(worker.stderr(Stdio::null()).spawn().unwrap());
    server.api.register(port).await;
    let question = json!({ "message": "Which day had the strongest wind?" });
    let (status, text) = server.api.call("wind", "ask", &question).await;
    assert_eq!(status, 200, "{text}");
    let finished: Finished = serde_json::from_str(&text).unwrap();
    assert_eq!(statuses(&finished), [Ok, Ok, Ok, Error, Ok]);
    assert!(finished.text.contains("31 knots"), "{}", finished.text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn an_awakeable_takes_answers_and_fails_closed() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let id = api
        .send("talk", "run", &json!({ "reply": put("a", "one") }))
        .await;
    let question = setting.question("talk", QuestionKind::Approval).await;
    api.resolve(&question.awakeable, "yes, please").await;
    let finished = setting.finished(&id).await;
    assert_eq!(statuses(&finished), [Rejected]);
    let error = finished.results[0].error.as_deref().unwrap();
    assert!(
        error.starts_with("the call could not be approved: the answer is invalid"),
        "{error}"
    );

    let id = api
        .send("other", "run", &json!({ "reply": put("a", "two") }))
        .await;
    let question = setting.question("other", QuestionKind::Approval).await;
    api.resolve(&question.awakeable, "{\"answer\": \"allow\"}")
        .await;
    assert_eq!(statuses(&setting.finished(&id).await), [Ok]);
    assert_eq!(setting.written(), "two\n");
}

/// The steps of `docs/durable.md`, with its files.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn an_interrupted_write_waits_for_a_recovery_answer() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/durable");
    let [tools, reply] = ["tools.toml", "reply.json"]
        .map(|name| std::fs::read_to_string(example.join(name)).unwrap());
    // A killed worker cannot stop its commands, and nothing should stay behind.
    let mut setting = Setting::of(&changed(&tools, "sleep 20", "sleep 3")).await;
    let reply: Value = serde_json::from_str(&reply).unwrap();
    let id = setting.api().send("bolts", "run", &reply).await;
    setting.question("bolts", QuestionKind::Approval).await;
    setting
        .answer("bolts", json!({ "question": 0, "answer": "allow" }))
        .await;
    let orders = setting.directory.path().join("orders.txt");
    setting.until("a start", |_| orders.exists()).await;
    let killed = Instant::now();
    setting.restart_program(&[]);
    setting.question("bolts", QuestionKind::Recovery).await;
    let answer = json!({ "question": 1, "answer": "done", "output": "ordered by hand" });
    setting.answer("bolts", answer).await;
    let finished = setting.finished(&id).await;
    assert_eq!(statuses(&finished), [Ok, Ok]);
    let output = finished.results[1].output.as_deref();
    assert_eq!(output, Some("ordered by hand"));
    let text = shown(&setting.api().get("bolts", "record").await.unwrap());
    let interrupted = text.lines().filter(|line| line.ends_with(", interrupted"));
    assert_eq!(interrupted.count(), 1, "{text}");
    assert_eq!(std::fs::read_to_string(orders).unwrap(), "bolt 97\n");
    sleep(Duration::from_secs(4).saturating_sub(killed.elapsed())).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn the_engine_cancels_and_times_out() {
    let limits = "gate_timeout = \"1s\"\nturn_timeout = \"2s\"";
    let setting = Setting::new(limits).await;
    let api = setting.api();
    let late = api
        .send("late", "run", &json!({ "reply": put("a", "one") }))
        .await;
    let slow = api
        .send("slow", "run", &json!({ "reply": wait("a", 30.0) }))
        .await;
    let long = api
        .send(
            "long",
            "run",
            &json!({ "reply": format!("{}{}", wait("a", 1000.0), put("b", "two")) }),
        )
        .await;
    setting.question("long", QuestionKind::Approval).await;
    let begun = Instant::now();
    api.cancel(&long).await;
    let (status, text) = setting.end(&long).await;
    assert_eq!(status, 409, "{text}");
    assert!(begun.elapsed() < Duration::from_mins(2));
    let record = read_log(api.get("long", "record").await.unwrap().as_bytes()).unwrap();
    let ends = record.events.iter().filter_map(|event| match event {
        plaincall::RunEvent::Result(result) => Some(result.status),
        _ => None,
    });
    assert_eq!(ends.collect::<Vec<_>>(), [Cancelled, Cancelled]);

    let finished = setting.finished(&late).await;
    assert_eq!(statuses(&finished), [Rejected]);
    let error = finished.results[0].error.as_deref().unwrap();
    assert!(error.contains("no answer within 1 s"), "{error}");
    let finished = setting.finished(&slow).await;
    assert_eq!(statuses(&finished), [Error]);
    let error = finished.results[0].error.as_deref().unwrap();
    assert!(
        error.starts_with("timed out: the turn exceeded its time limit of 2 s"),
        "{error}"
    );
    assert_eq!(setting.written(), "");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_conversation_continues_and_needs_a_model_to_ask() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let first = api
        .call("talk", "run", &json!({ "reply": wait("a", 0.0) }))
        .await;
    assert_eq!(first.0, 200, "{}", first.1);
    // A later reply may depend on an earlier call. The emoji syntax runs in written order.
    let later = "!!!GADGET_START:wait:b:a\n!!!ARG:seconds\n0\n!!!GADGET_END\n";
    let (_, text) = api.call("talk", "run", &json!({ "reply": later })).await;
    let finished: Finished = serde_json::from_str(&text).unwrap();
    assert_eq!(statuses(&finished), [Ok]);
    assert_eq!(finished.results[0].call, 1);
    let emoji = "🛠️[wait 0]\n🛠️[/end]\n🛠️[wait nothing]\n🛠️[/end]";
    let (_, text) = api.call("emoji", "run", &json!({ "reply": emoji })).await;
    let finished: Finished = serde_json::from_str(&text).unwrap();
    assert_eq!(statuses(&finished), [Ok, Rejected]);
    let (status, text) = api.call("talk", "run", &json!({})).await;
    assert_eq!(status, 400);
    assert!(text.contains("missing field `reply`"), "{text}");
    let body = json!({ "reply": "Well.", "yes": true });
    let (status, text) = api.call("talk", "run", &body).await;
    assert_eq!(status, 400);
    assert!(text.contains("unknown field `yes`"), "{text}");
    let (status, text) = api
        .call("talk", "ask", &json!({ "message": "Hello" }))
        .await;
    assert_eq!(status, 400);
    assert!(text.contains("this worker has no model"), "{text}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn large_outputs_do_not_exceed_the_limits_of_the_server() {
    let setting = Setting::new("").await;
    let call = |number| format!("!!!GADGET_START:fill:f{number}\n!!!GADGET_END\n");
    let reply: String = (0..300).map(call).collect();
    let body = json!({ "reply": reply });
    let id = setting.api().send("talk", "run", &body).await;
    let finished = setting.finished(&id).await;
    assert_eq!(finished.results.len(), 300);
    assert!(finished.results.iter().all(|one| one.status == Ok));
    // Each is truncated for the model, and the last ones are omitted.
    let first = finished.results[0].output.as_ref().unwrap();
    assert!(first.len() < 70_000);
    assert!(finished.results[299].output.is_none());
    assert_eq!(finished.results[299].whole_bytes, Some(100_000));
    // The record has all of them, in parts, and the conversation continues from it.
    let text = setting.api().get("talk", "record").await.unwrap();
    assert!(text.contains("too long for one response"), "{text:.200}");
    let lines = setting.api().parts("talk").await;
    let record = read_log(lines.as_bytes()).unwrap();
    assert!(record.torn.is_none() && lines.len() > 300 * 100_000);
    let next = "!!!GADGET_START:flood:g:f299\n!!!GADGET_END\n!!!GADGET_START:wait:w:g\n!!!ARG:seconds\n0\n!!!GADGET_END\n";
    let body = json!({ "reply": next });
    let (status, text) = setting.api().call("talk", "run", &body).await;
    assert_eq!(status, 200, "{text}");
    let finished: Finished = serde_json::from_str(&text).unwrap();
    assert_eq!(statuses(&finished), [Ok, Ok]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn parallel_large_outputs_stop_no_conversation() {
    let setting = Setting::new("").await;
    let call = |number| format!("!!!GADGET_START:large:l{number}\n!!!GADGET_END\n");
    let reply: String = (0..24).map(call).collect();
    let body = json!({ "reply": reply });
    for round in 0..5 {
        let key = format!("large{round}");
        let id = setting.api().send(&key, "run", &body).await;
        let other = async {
            for number in 0..5 {
                let (key, body) = (
                    format!("other{round}-{number}"),
                    json!({ "reply": wait("a", 0.0) }),
                );
                let (status, text) = setting.api().call(&key, "run", &body).await;
                assert_eq!(status, 200, "{text}");
            }
        };
        let both = async { tokio::join!(setting.finished(&id), other).0 };
        let finished = tokio::time::timeout(PATIENCE, both).await;
        let finished = finished.unwrap_or_else(|_| panic!("round {round} does not end"));
        assert!(finished.results.iter().all(|one| one.status == Ok));
        assert_eq!(finished.results.len(), 24);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn questions_are_stored_one_by_one() {
    let setting = Setting::new("").await;
    let text = "x".repeat(20_000);
    let reply: String = (0..100)
        .map(|number| put(&format!("c{number}"), &text))
        .collect();
    let body = json!({ "reply": reply });
    let id = setting.api().send("talk", "run", &body).await;
    // A question that is stored just now is never taken for a closed one.
    let early = (0..8).map(|number| {
        let api = setting.api().clone();
        tokio::spawn(async move {
            let answer = json!({ "question": number * 12, "answer": "deny" });
            let until = Instant::now() + PATIENCE;
            loop {
                match api.call("talk", "answer", &answer).await {
                    (404, text) => assert!(Instant::now() < until, "{text}"),
                    (status, text) => return assert_eq!(status, 200, "{text}"),
                }
            }
        })
    });
    for early in early.collect::<Vec<_>>() {
        early.await.unwrap();
    }
    setting.until_asked("talk", 92).await;
    for number in (0..99).filter(|number| number % 12 != 0 || *number > 84) {
        let answer = json!({ "question": number, "answer": "deny" });
        setting.answer("talk", answer).await;
    }
    // The journal is removed at the end.
    let query = format!("SELECT sum(raw_length) AS bytes FROM sys_journal WHERE id = '{id}'");
    let rows = setting.api().query(&query).await;
    let bytes = rows.first().and_then(|row| row["bytes"].as_u64());
    assert!(bytes.is_some_and(|bytes| bytes < 30_000_000), "{rows:?}");
    setting
        .answer("talk", json!({ "question": 99, "answer": "deny" }))
        .await;
    let finished = setting.finished(&id).await;
    assert_eq!(finished.results.len(), 100);
}

/// A model server that is down is a problem of the status, and a request to one that is silent ends with a cancellation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn the_status_shows_a_failing_model_and_a_request_to_it_is_cancelled() {
    let down = json!({ "error": { "message": "out of memory" } });
    let silent = Script::nothing(Then::Stall);
    let model = ModelServer::start(vec![Script::json(503, &down), silent]).await;
    let table = format!("[models.any]\nurl = '{}'", model.url());
    let setting = Setting::with_model(TOOLS, &table, &[]).await;
    let message = json!({ "message": "Hello?" });
    let id = setting.api().send("talk", "ask", &message).await;
    let until = Instant::now() + PATIENCE;
    loop {
        let problem = setting.problem("talk").await.unwrap_or_default();
        if problem.contains("out of memory") && problem.contains("asked again after 1 s") {
            break;
        }
        assert!(Instant::now() < until, "{problem}");
        sleep(Duration::from_millis(50)).await;
    }
    setting
        .until("a second request", |_| model.seen().requests.len() == 2)
        .await;
    let begun = Instant::now();
    setting.api().cancel(&id).await;
    assert_eq!(setting.end(&id).await.0, 409);
    assert!(begun.elapsed() < Duration::from_secs(30));
    assert_eq!(setting.problem("talk").await, None);
}

/// The server suspends what is silent for longer, but no request to a model.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_silent_model_does_not_suspend_its_conversation() {
    let mut slow = Script::stream(&["Hello."], "stop");
    slow.head.as_mut().unwrap().after = Duration::from_secs(4);
    let model = ModelServer::start(vec![slow]).await;
    let table = format!("[models.any]\nurl = '{}'", model.url());
    let setting = Setting::with_model(TOOLS, &table, &[]).await;
    let message = json!({ "message": "Hello?" });
    let (status, text) = setting.api().call("talk", "ask", &message).await;
    assert!(status == 200 && text.contains("Hello."), "{status} {text}");
    assert_eq!(model.seen().requests.len(), 1);
}

/// The agent loop of `plaincall ask`: half an answer is none, and a call that fails again and again ends a question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn replies_are_repaired_and_limited_as_in_ask() {
    let call = "!!!GADGET_START:wait\n!!!ARG:seconds\nno number\n!!!GADGET_END\n";
    let replies = [
        ("Half an ans", "length"),
        ("", "stop"),
        (
            "!!!GADGET_STRT:wait\n!!!ARG:seconds\n0\n!!!GADGET_END\n",
            "stop",
        ),
        ("Done.", "stop"),
        (call, "stop"),
        (call, "stop"),
        (call, "stop"),
    ];
    let scripts = replies.map(|(text, reason)| Script::stream(&[text], reason));
    let model = ModelServer::start(scripts.into()).await;
    let table = format!(
        "system = 'Be brief.'\n[limits]\nreminders = 1\n[models.any]\nurl = '{}'\nfew_shot = 1\n\
         [[models.any.examples]]\nquestion = 'Hi!'\nanswer = 'Good morning!'",
        model.url()
    );
    let setting = Setting::with_model(TOOLS, &table, &[]).await;
    for (key, expected) in [
        (
            "half",
            "the model's reply was truncated by its length limit",
        ),
        ("repaired", "Done."),
        ("same", "the model repeats a failing call of `wait`"),
    ] {
        let message = json!({ "message": "Write !!!GADGET_START: please." });
        let (status, text) = setting.api().call(key, "ask", &message).await;
        assert_eq!(status, if key == "repaired" { 200 } else { 500 }, "{text}");
        assert!(text.contains(expected), "{text}");
    }
    let requests = model.seen().requests;
    assert_eq!(requests.len(), replies.len());
    let last = |place: usize| {
        let body = requests[place].json();
        let messages = body["messages"].as_array().unwrap();
        let system = messages[0]["content"].as_str().unwrap();
        assert!(system.ends_with("\n\nBe brief."), "{system}");
        assert_eq!(messages[1]["content"], "Hi!");
        messages.last().unwrap()["content"]
            .as_str()
            .unwrap()
            .to_owned()
    };
    // The markers of a question are escaped.
    assert_eq!(last(1).trim(), "Write !!!GADGET_START\\: please.");
    assert!(last(2).contains("Your reply was empty."), "{}", last(2));
    assert!(
        last(3).contains("only text that looks like one"),
        "{}",
        last(3)
    );
    assert!(last(6).contains("failed again"), "{}", last(6));
}
