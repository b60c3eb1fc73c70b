//! Workers whose clocks are wrong.

use plaincall::Status::Ok;
use plaincall_restate::QuestionKind;
use serde_json::json;

use crate::setting::{Killed, Setting, put, started, statuses, wait};
use crate::workers::shim;

/// Replaces the worker by those with these offsets, in seconds, at one address.
fn replace_workers(setting: &mut Setting, offsets: &[i32], options: &[&str]) -> Vec<Killed> {
    let shim = shim(setting.directory.path()).unwrap();
    setting.program.kill().unwrap();
    setting.program.wait().unwrap();
    let one = |offset: &i32| {
        let mut all = vec!["--share-port"];
        all.extend(options);
        let mut command = started(setting.directory.path(), setting.port, &all);
        command.env("LD_PRELOAD", &shim);
        Killed(
            command
                .env("CLOCK_OFFSET", offset.to_string())
                .spawn()
                .unwrap(),
        )
    };
    offsets.iter().map(one).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_worker_that_is_ahead_times_out_nothing() {
    let mut setting = Setting::new("turn_timeout = \"40s\"").await;
    let workers = replace_workers(&mut setting, &[0, 60], &["--yes"]);
    setting.api().register(setting.port).await;
    // Connections are spread over the workers.
    let reply: String = (0..20)
        .map(|number| wait(&format!("w{number}"), 0.0))
        .collect();
    let last = "!!!GADGET_START:put:p:w0,w19\n!!!ARG:line\none\n!!!GADGET_END\n";
    for key in 0..6 {
        let body = json!({ "reply": format!("{reply}{last}") });
        let id = setting.api().send(&key.to_string(), "run", &body).await;
        assert_eq!(statuses(&setting.finished(&id).await), [Ok; 21]);
    }
    drop(workers);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_worker_that_is_behind_waits_for_answers_and_calls() {
    let limits = "gate_timeout = \"1h\"\nturn_timeout = \"1h\"";
    let mut setting = Setting::new(limits).await;
    let workers = replace_workers(&mut setting, &[-7200], &[]);
    setting.api().register(setting.port).await;
    let body = json!({ "reply": format!("{}{}", put("a", "one"), wait("b", 3.0)) });
    let id = setting.api().send("talk", "run", &body).await;
    setting.question("talk", QuestionKind::Approval).await;
    tokio::time::sleep(std::time::Duration::from_secs(2)).await;
    setting
        .answer("talk", json!({ "question": 0, "answer": "allow" }))
        .await;
    assert_eq!(statuses(&setting.finished(&id).await), [Ok, Ok]);
    drop(workers);
}
