//! What the server keeps of a conversation.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use plaincall::Status::{Ok, Rejected};
use plaincall::log::read_log;
use plaincall_restate::QuestionKind;
use plaincall_testkit::cases::cases;
use serde_json::json;
use tokio::time::sleep;

use crate::server::{Api, PATIENCE};
use crate::setting::{Setting, TOOLS, changed, put, statuses, wait};

/// The number of writes in a long reply.
const WRITES: usize = 300;

/// Returns how many rows of the journals of conversations and answers the server has, and how many invocations.
async fn kept(api: &Api) -> (u64, u64) {
    let conversations = "target_service_name LIKE 'Conversation%'";
    let invocations = format!("SELECT count(*) AS n FROM sys_invocation WHERE {conversations}");
    let entries = format!(
        "SELECT count(*) AS n FROM sys_journal j JOIN sys_invocation i ON j.id = i.id WHERE i.{conversations}"
    );
    let mut counts = [0, 0];
    for (count, query) in counts.iter_mut().zip([entries, invocations]) {
        let rows = api.query(&query).await;
        *count = rows[0]["n"].as_u64().unwrap();
    }
    counts.into()
}

/// Otherwise a page that polls conversations fills the disk, and each reply leaves a copy of the record.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn reading_keeps_nothing_and_replies_keep_their_results() {
    let tools = changed(TOOLS, "output_limit = 3000000", "output_limit = 2000000");
    let setting = Setting::of(&tools).await;
    let api = setting.api();
    let reply = json!({ "reply": "!!!GADGET_START:large\n!!!GADGET_END\n" });
    let mut sent = Vec::new();
    for _ in 0..10 {
        sent.push(api.send("talk", "run", &reply).await);
    }
    for id in &sent {
        assert_eq!(statuses(&setting.finished(id).await), [Ok]);
    }
    let (status, _) = api.call("talk", "run", &reply).await;
    assert_eq!(status, 200);
    let before = disk_use(setting.directory.path());
    for number in cases("RESTATE_READS", 250) {
        api.get("talk", "status").await.unwrap();
        if number % 50 == 0 {
            let record = api.get("talk", "record").await.unwrap();
            assert!(record.len() > 22_000_000);
            api.call("talk", "record_part", &json!({ "part": 0 })).await;
            let late = json!({ "question": 0, "answer": "allow" });
            assert_eq!(api.call("talk", "answer", &late).await.0, 404);
        }
    }
    // The results of replies can be read later, and a repeated request has no further effect.
    let until = Instant::now() + PATIENCE;
    loop {
        let kept = kept(api).await;
        if kept == (0, 11) {
            break;
        }
        assert!(Instant::now() < until, "{kept:?}");
        sleep(Duration::from_millis(100)).await;
    }
    let grown = disk_use(setting.directory.path()).saturating_sub(before);
    println!("restate reads: the disk use grew by {grown} bytes");
    assert!(grown < 100_000_000, "{grown} bytes");
}

/// Returns the size of all files of a directory in bytes.
fn disk_use(directory: &Path) -> u64 {
    let output = Command::new("du").arg("-sk").arg(directory).output();
    let text = String::from_utf8(output.unwrap().stdout).unwrap();
    let kilobytes: u64 = text.split_whitespace().next().unwrap().parse().unwrap();
    kilobytes << 10
}

/// Each line of the record is written at most twice, and the record has few parts.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_long_reply_does_not_journal_its_record_again_and_again() {
    let more = "\n[tools.last]\ndescription = 'Ends.'\nparameters = {}\ncommand = ['true']\neffect = 'write'\n[[rules]]\ntools = 'put'\nverdict = 'allow'\n";
    let setting = Setting::of(&format!("{TOOLS}{more}")).await;
    let api = setting.api();
    let mut reply: String = (0..WRITES)
        .map(|number| put(&format!("p{number}"), &format!("line {number}")))
        .collect();
    reply.push_str("!!!GADGET_START:last\n!!!GADGET_END\n");
    let id = api.send("talk", "run", &json!({ "reply": reply })).await;
    setting
        .until("all writes", |setting| {
            setting.written().lines().count() == WRITES
        })
        .await;
    let query = format!(
        "SELECT sum(raw_length) AS bytes FROM sys_journal WHERE id = '{id}' AND entry_type LIKE '%SetState%'"
    );
    let rows = api.query(&query).await;
    let stored = rows[0]["bytes"].as_u64().unwrap();
    setting
        .answer_when_asked("talk", json!({ "question": 0, "answer": "allow" }))
        .await;
    assert_eq!(setting.finished(&id).await.results.len(), WRITES + 1);
    let record = api.get("talk", "record").await.unwrap().len() as u64;
    println!("{WRITES} writes: a record of {record} bytes, stored as {stored} bytes");
    // They are written once more when they are joined.
    assert!(stored < record + record / 2, "{stored} bytes for {record}");
    let query = "SELECT count(*) AS n FROM state WHERE key LIKE 'record %'";
    let parts = api.query(query).await[0]["n"].as_u64().unwrap();
    assert!(parts <= 2, "{parts} parts");
    let lines = api.get("talk", "record").await.unwrap();
    assert!(read_log(lines.as_bytes()).unwrap().torn.is_none());
}

/// A reply that is killed while it joins parts leaves some of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn parts_that_a_kill_left_are_removed_by_the_next_reply() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let reply = json!({ "reply": wait("a", 0.0) });
    assert_eq!(api.call("talk", "run", &reply).await.0, 200);
    let record = api.get("talk", "record").await.unwrap();
    let second = record.find('\n').unwrap() + 1;
    let third = second + record[second..].find('\n').unwrap() + 1;
    let left = [
        ("record 0", &record[..second]),
        ("record 1", &record[second..third]),
        ("record 4", &record),
    ];
    api.set_state("talk", &left).await;
    let until = Instant::now() + PATIENCE;
    while api.parts("talk").await.len() != record.len() + third {
        assert!(Instant::now() < until, "the state does not change");
        sleep(Duration::from_millis(50)).await;
    }
    assert_eq!(api.get("talk", "record").await.unwrap(), record);
    assert_eq!(api.call("talk", "run", &reply).await.0, 200);
    let parts = api.parts("talk").await;
    assert!(parts.starts_with(&record) && parts.len() > record.len());
    assert_eq!(parts, api.get("talk", "record").await.unwrap());
    assert!(read_log(parts.as_bytes()).unwrap().torn.is_none());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn open_questions_are_listed_and_a_conversation_is_forgotten_with_its_answers() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let body = json!({ "reply": put("a", "one") });
    let id = api.send("talk", "run", &body).await;
    setting.question("talk", QuestionKind::Approval).await;
    let text = api.get("talk", "forget").await.unwrap();
    assert!(text.contains("a reply is in progress"), "{text}");
    setting
        .answer("talk", json!({ "question": 0, "answer": "allow" }))
        .await;
    assert_eq!(statuses(&setting.finished(&id).await), [Ok]);
    // One that was killed is not in progress. Its answer does not count for the next question with its number.
    let id = api.send("talk", "run", &body).await;
    setting.until_asked("talk", 1).await;
    let other = api.send("other", "run", &body).await;
    setting.until_open(&[("other", 0), ("talk", 1)]).await;
    api.cancel(&other).await;
    api.kill(&id).await;
    setting.end(&id).await;
    setting.end(&other).await;
    setting.until_open(&[("talk", 1)]).await;
    setting
        .answer("talk", json!({ "question": 1, "answer": "allow" }))
        .await;
    assert_eq!(api.get("talk", "forget").await.unwrap(), "");
    assert_eq!(api.get("other", "forget").await.unwrap(), "");
    setting.until_open(&[]).await;
    let rows = api.query("SELECT service_name, key FROM state").await;
    assert!(rows.is_empty(), "{rows:?}");
    assert_eq!(api.get("talk", "record").await.unwrap(), "");
    let id = api.send("talk", "run", &body).await;
    let question = setting.question("talk", QuestionKind::Approval).await;
    assert_eq!(question.question, 0);
    setting
        .answer("talk", json!({ "question": 0, "answer": "deny" }))
        .await;
    assert_eq!(statuses(&setting.finished(&id).await), [Rejected]);
}

/// An answer to a killed reply may arrive while the conversation is forgotten.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn an_answer_that_races_with_forget_is_not_kept() {
    let setting = Setting::new("").await;
    let api = setting.api();
    let body = json!({ "reply": put("a", "one") });
    let allow = json!({ "question": 0, "answer": "allow" });
    for number in cases("RESTATE_RACES", 20) {
        let key = &format!("talk{number}");
        let id = api.send(key, "run", &body).await;
        setting.until_asked(key, 1).await;
        api.kill(&id).await;
        setting.end(&id).await;
        let forget = async {
            sleep(Duration::from_millis(number % 20)).await;
            api.get(key, "forget").await
        };
        let (_, forgotten) = tokio::join!(api.call(key, "answer", &allow), forget);
        assert_eq!(forgotten.unwrap(), "");
    }
    let rows = api
        .query("SELECT service_name, key FROM state WHERE service_name = 'ConversationAnswers'")
        .await;
    assert!(rows.is_empty(), "{rows:?}");
}
