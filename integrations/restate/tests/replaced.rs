//! Workers that are replaced by others, and invocations that are killed.

use std::time::{Duration, Instant};

use plaincall::Status::{Cancelled, Ok, Rejected, Unknown};
use plaincall::log::read_log;
use plaincall_restate::QuestionKind;
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::server::{PATIENCE, free_port};
use crate::setting::{Killed, Setting, TOOLS, changed, configured, program, put, statuses, wait};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn every_change_of_a_worker_is_a_problem() {
    let mut setting = Setting::new("").await;
    let url = "url = 'http://127.0.0.1:1/v1'";
    let tables = format!(
        "[models.one]\n{url}\n[models.two]\n{url}\n[models.emoji]\n{url}\nmodel = 'one'\nsyntax = 'emoji'\n\
         [models.examples]\n{url}\nmodel = 'one'\nfew_shot = 1\n\
         [[models.examples.examples]]\nquestion = 'Hi!'\nanswer = 'Hello!'\n\
         [models.short]\n{url}\nmodel = 'one'\nmax_tokens = 9"
    );
    let options = configured(setting.directory.path(), &tables, "");
    let model = |name| [&*options[0], &*options[1], "--model", name];
    setting.restart_program(&model("one"));
    let body = json!({ "reply": put("a", "one") });
    let id = setting.api().send("talk", "run", &body).await;
    setting.question("talk", QuestionKind::Approval).await;
    let (tool, others) = (
        "the tool `put` has changed",
        "syntax, model or system prompt",
    );
    let system = setting.directory.path().join("system.txt");
    std::fs::write(&system, "Be brief.").unwrap();
    let system = ["--system", system.to_str().unwrap()];
    let table: [(&str, &str, &[&str], &str); 10] = [
        (">> written", ">> elsewhere", &[], tool),
        ("{directory:tools}", "{directory:current}", &[], tool),
        (
            "effect = \"write\"",
            "effect = \"write\"\nenvironment = [\"HOME\"]",
            &[],
            tool,
        ),
        (
            "[tools.put]",
            "[tools.more]\ndescription = \"More.\"\ncommand = [\"true\"]\n[tools.put]",
            &[],
            "the tool `more` is new",
        ),
        ("", "", &["--model", "emoji"], others),
        ("", "", &system, others),
        ("", "", &["--model", "two"], others),
        ("", "", &["--yes"], others),
        ("", "", &["--model", "examples"], others),
        ("", "", &["--model", "short"], others),
    ];
    for (old, new, options, problem) in table {
        setting.write_tools(&TOOLS.replacen(old, new, 1));
        let mut all = model("one").to_vec();
        if let ["--model", name] = options {
            all[3] = name;
        } else {
            all.extend(options);
        }
        setting.restart_program(&all);
        let reported = setting.problem("talk").await.unwrap_or_default();
        assert!(reported.contains(problem), "{new} {options:?}: {reported}");
    }
    // The first answer counts, also while the worker of the conversation is away.
    for (answer, expected) in [("deny", 200), ("allow", 409), ("deny", 200)] {
        let answer = json!({ "question": 0, "answer": answer });
        let (code, text) = setting.api().call("talk", "answer", &answer).await;
        assert_eq!(code, expected, "{text}");
    }
    assert_ne!(setting.problem("talk").await, None);
    setting.write_tools(TOOLS);
    setting.restart_program(&model("one"));
    assert_eq!(statuses(&setting.finished(&id).await), [Rejected]);
}

/// Each call goes to workers of its conversation, although others are registered meanwhile.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn conversations_end_on_the_workers_that_they_were_started_with() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let both = format!(
        "{}!!!GADGET_START:put:b:a\n!!!ARG:line\ntwo\n!!!GADGET_END\n",
        put("a", "one")
    );
    let old = api.send("old", "run", &json!({ "reply": both })).await;
    setting.question("old", QuestionKind::Approval).await;
    let reply = format!("{}{}", put("a", "never"), wait("b", 1000.0));
    let cancelled = api
        .send("cancelled", "run", &json!({ "reply": reply }))
        .await;
    setting.question("cancelled", QuestionKind::Approval).await;

    let port = free_port();
    let _next = Killed(program(
        setting.directory.path(),
        port,
        &["--release", "next"],
    ));
    api.register(port).await;
    let problem = setting.problem("old").await.unwrap_or_default();
    assert!(
        problem.contains("(next), but the conversation was started by version"),
        "{problem}"
    );
    for number in 0..2 {
        let answer = json!({ "question": number, "answer": "allow" });
        setting.answer_when_asked("old", answer).await;
    }
    let finished = setting.finished(&old).await;
    assert_eq!(statuses(&finished), [Ok, Ok]);
    assert_eq!(setting.written(), "one\ntwo\n");

    let begun = Instant::now();
    api.cancel(&cancelled).await;
    assert_eq!(setting.end(&cancelled).await.0, 409);
    assert!(begun.elapsed() < Duration::from_mins(2));

    let new = api
        .send("new", "run", &json!({ "reply": put("a", "three") }))
        .await;
    let answer = json!({ "question": 0, "answer": "allow" });
    setting.answer_when_asked("new", answer).await;
    assert_eq!(statuses(&setting.finished(&new).await), [Ok]);
    // The next reply of an earlier conversation runs on the new workers.
    let (code, text) = api
        .call("old", "run", &json!({ "reply": wait("c", 0.0) }))
        .await;
    assert_eq!(code, 200, "{text}");
}

/// A worker that is asked to end lets its tools end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_shutdown_waits_for_tools() {
    let tools = changed(TOOLS, r#"; echo \"$PLAIN"#, r#"; sleep 15; echo \"$PLAIN"#);
    let mut setting = Setting::with_options(&tools, &["--yes"]).await;
    let body = json!({ "reply": put("a", "one") });
    let id = setting.api().send("talk", "run", &body).await;
    setting
        .until("a start", |setting| !setting.written().is_empty())
        .await;
    let pid = rustix::process::Pid::from_child(&setting.program);
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    let begun = Instant::now();
    while setting.program.try_wait().unwrap().is_none() {
        assert!(begun.elapsed() < PATIENCE);
        sleep(Duration::from_millis(50)).await;
    }
    assert!(begun.elapsed() > Duration::from_secs(12));
    setting.restart_program(&["--yes"]);
    assert_eq!(statuses(&setting.finished(&id).await), [Ok]);
    assert_eq!(setting.written(), "one\n");
}

/// While the worker of a conversation is away, an answer counts until the time limit of its question.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn an_answer_after_the_time_limit_is_refused() {
    let mut setting = Setting::new("gate_timeout = \"15s\"").await;
    let mut sent = Vec::new();
    for key in ["late", "in-time"] {
        let body = json!({ "reply": put("a", key) });
        sent.push(setting.api().send(key, "run", &body).await);
        let question = setting.question(key, QuestionKind::Approval).await;
        let limit = question.until_unix_ms - question.asked_unix_ms;
        assert_eq!(limit, 15_000);
    }
    setting.restart_program(&["--release", "next"]);
    setting.problem("late").await;
    let answer = json!({ "question": 0, "answer": "allow" });
    setting.answer("in-time", answer.clone()).await;
    sleep(Duration::from_secs(16)).await;
    let (code, text) = setting.api().call("late", "answer", &answer).await;
    assert_eq!(code, 409, "{text}");
    assert!(
        text.contains("the time limit of question 0 is over"),
        "{text}"
    );
    setting.restart_program(&[]);
    for (id, status) in sent.iter().zip([Rejected, Ok]) {
        assert_eq!(statuses(&setting.finished(id).await), [status]);
    }
    assert_eq!(setting.written(), "in-time\n");
}

/// A killed invocation ends on workers that cannot continue it, and the record shows what had started.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn the_record_of_a_killed_invocation_shows_which_writes_had_started() {
    let tools = changed(TOOLS, r#"; echo \"$PLAIN"#, r#"; sleep 3; echo \"$PLAIN"#);
    let mut setting = Setting::of(&tools).await;
    let reply = format!("{}{}{}", put("a", "one"), put("b", "two"), wait("c", 3.0));
    let id = setting
        .api()
        .send("talk", "run", &json!({ "reply": reply }))
        .await;
    let answer = json!({ "question": 0, "answer": "allow" });
    setting.answer_when_asked("talk", answer).await;
    setting
        .until("a start", |setting| !setting.written().is_empty())
        .await;
    setting.restart_program(&["--release", "next"]);
    assert!(setting.problem("talk").await.is_some());
    setting.api().kill(&id).await;
    assert_eq!(setting.end(&id).await.0, 409);
    // The invocations of its calls are killed too.
    let query = "SELECT target FROM sys_invocation WHERE status <> 'completed'";
    let until = Instant::now() + PATIENCE;
    while !setting.api().query(query).await.is_empty() {
        assert!(Instant::now() < until, "calls are left");
        sleep(Duration::from_millis(50)).await;
    }

    let (code, text) = setting
        .api()
        .call("talk", "run", &json!({ "reply": "Well." }))
        .await;
    assert_eq!(code, 200, "{text}");
    let record = setting.api().get("talk", "record").await.unwrap();
    let events = read_log(record.as_bytes()).unwrap().events;
    let ends = events.iter().filter_map(|event| match event {
        plaincall::RunEvent::Result(result) => Some((result.call, result.status)),
        _ => None,
    });
    let mut ends: Vec<_> = ends.collect();
    ends.sort_by_key(|(call, _)| *call);
    assert_eq!(
        ends,
        [(0, Unknown), (1, Cancelled), (2, Cancelled)],
        "{record}"
    );
    // The question about the other call is no longer open.
    let status: Value =
        serde_json::from_str(&setting.api().get("talk", "status").await.unwrap()).unwrap();
    assert_eq!(status["questions"], json!([]));
    let late = json!({ "question": 1, "answer": "allow" });
    let (code, text) = setting.api().call("talk", "answer", &late).await;
    assert_eq!(code, 409, "{text}");
    // No later question has its number.
    setting
        .api()
        .send("talk", "run", &json!({ "reply": put("d", "four") }))
        .await;
    let question = setting.question("talk", QuestionKind::Approval).await;
    assert_eq!(question.question, 2);
}

/// Without them, the model would carry out the order again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn the_model_reads_the_reply_and_the_results_of_a_killed_invocation() {
    let call = put("a", "one");
    let replies = [&*call, "I see."].map(|text| Script::stream(&[text], "stop"));
    let model = ModelServer::start(replies.into()).await;
    let tools = changed(
        TOOLS,
        r#"; echo \"$PLAIN"#,
        r#"; until [ -e go ]; do sleep 0.05; done; echo \"$PLAIN"#,
    );
    let table = format!("[models.any]\nurl = '{}'", model.url());
    let setting = Setting::with_model(&tools, &table, &["--yes"]).await;
    let question = json!({ "message": "Order it." });
    let id = setting.api().send("talk", "ask", &question).await;
    setting
        .until("a start", |setting| !setting.written().is_empty())
        .await;
    setting.api().kill(&id).await;
    std::fs::write(setting.directory.path().join("go"), "").unwrap();
    let question = json!({ "message": "What happened?" });
    let (code, text) = setting.api().call("talk", "ask", &question).await;
    assert_eq!(code, 200, "{text}");
    let request = model.seen().requests[1].json();
    let messages = request["messages"].as_array().unwrap().iter();
    let messages = messages.filter(|message| message["role"] != "system");
    let texts: Vec<&str> = messages
        .map(|message| message["content"].as_str().unwrap())
        .collect();
    let [first, reply, last] = texts[..] else {
        panic!("{texts:?}");
    };
    assert_eq!((first, reply), ("Order it.", &*call));
    assert!(
        last.starts_with("Result 1 of 1: tool put, id a, status unknown\n"),
        "{last}"
    );
    assert!(last.ends_with("\n\nWhat happened?"), "{last}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn calls_after_a_killed_invocation_have_other_keys() {
    let tools = changed(TOOLS, "effect = \"write\"", "effect = \"idempotent\"");
    // It writes its key, and ends when it is let go.
    let tools = changed(
        &tools,
        r#"echo \"$1\" >> written;"#,
        "echo $PLAINCALL_IDEMPOTENCY_KEY >> written; until [ -e go ]; do sleep 0.05; done;",
    );
    let setting = Setting::with_options(&tools, &["--yes"]).await;
    let id = setting
        .api()
        .send("talk", "run", &json!({ "reply": put("a", "one") }))
        .await;
    setting
        .until("a start", |setting| !setting.written().is_empty())
        .await;
    setting.api().kill(&id).await;
    std::fs::write(setting.directory.path().join("go"), "").unwrap();
    let (code, text) = setting
        .api()
        .call("talk", "run", &json!({ "reply": put("b", "two") }))
        .await;
    assert_eq!(code, 200, "{text}");
    let written = setting.written();
    let keys: Vec<&str> = written.lines().collect();
    assert!(keys.len() == 2 && keys[0] != keys[1], "{keys:?}");
}

/// Workers with other definitions have to be registered before they can run calls. The server tries again, more often than its
/// own limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn calls_wait_until_their_workers_are_registered() {
    let mut setting = Setting::new("").await;
    setting.restart_program(&["--release", "next"]);
    let id = setting
        .api()
        .send("talk", "run", &json!({ "reply": wait("a", 0.0) }))
        .await;
    let query =
        format!("SELECT last_failure FROM sys_invocation WHERE id = '{id}' AND retry_count > 5");
    let until = Instant::now() + PATIENCE;
    let failure = loop {
        let rows = setting.api().query(&query).await;
        if let Some(failure) = rows.first().and_then(|row| row["last_failure"].as_str()) {
            break failure.to_owned();
        }
        assert!(Instant::now() < until, "too few attempts");
        sleep(Duration::from_millis(50)).await;
    };
    assert!(failure.contains("PlaincallCall-"), "{failure}");
    setting.api().register(setting.port).await;
    assert_eq!(statuses(&setting.finished(&id).await), [Ok]);
}

/// A tool that kills its worker is started again, but not without limit.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_tool_that_kills_its_workers_fails_in_the_end() {
    let tools = changed(
        TOOLS,
        "sleep {seconds}",
        "echo start >> starts; sleep 0.2; kill -9 $PPID",
    );
    let tools = changed(
        &tools,
        "effect = \"read\"",
        "directory = \"{directory:tools}\"\neffect = \"read\"",
    );
    let mut setting = Setting::of(&tools).await;
    let body = json!({ "reply": wait("a", 0.0) });
    let id = setting.api().send("talk", "run", &body).await;
    let until = Instant::now() + PATIENCE;
    let (code, text) = loop {
        if let Some(output) = setting.api().output(&id).await {
            break output;
        }
        assert!(Instant::now() < until, "the call does not end");
        if setting.program.try_wait().unwrap().is_some() {
            setting.restart_program(&[]);
        }
        sleep(Duration::from_millis(50)).await;
    };
    assert_eq!(code, 200, "{text}");
    assert!(
        text.contains("the worker was lost in each of 6 attempts"),
        "{text}"
    );
    let starts = std::fs::read_to_string(setting.directory.path().join("starts")).unwrap();
    // One that was killed before its start was in the journal is not counted.
    let starts = starts.lines().count();
    assert!((6..=8).contains(&starts), "{starts} starts");
}
