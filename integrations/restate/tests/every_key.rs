//! One configuration for all commands: the worker reads a file with every key.

use std::process::Stdio;

use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::json;

use crate::setting::{Setting, TOOLS, configured, started};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "needs a Restate server: cargo xtask restate"]
async fn a_worker_reads_every_key() {
    let replies = ["Hello.", "Hello again."].map(|text| Script::stream(&[text], "stop"));
    let model = ModelServer::start(replies.into()).await;
    let text = include_str!("../../../testing/every_key.toml");
    // Variables of these names are always set.
    let text = text.replace("{url}", &model.url());
    let text = text
        .replace("${TEAM}", "${PATH}")
        .replace("\"KEY\"", "\"PATH\"");
    let mut setting = Setting::new("").await;
    let directory = setting.directory.path().to_owned();
    std::fs::write(directory.join("key"), "key-of-the-file\n").unwrap();
    std::fs::write(directory.join("replies.jsonl"), "\"A recorded reply.\"\n").unwrap();
    for (name, expected) in [
        ("full", "Hello."),
        ("tiny-1", "Hello again."),
        ("recorded", "A recorded reply."),
    ] {
        let options = configured(&directory, &text, name);
        let mut options: Vec<&str> = options.iter().map(String::as_str).collect();
        options.push("--ignore-unsupported");
        setting.restart_program(&options);
        setting.api().register(setting.port).await;
        let question = json!({ "message": "Hello?" });
        let (status, answer) = setting.api().call(name, "ask", &question).await;
        assert_eq!(status, 200, "{answer}");
        assert!(answer.contains(expected), "{name}: {answer}");
    }
    let requests = model.seen().requests;
    let (head, body) = (&requests[0].head, requests[0].json());
    assert!(
        head.contains("authorization: bearer key-of-the-file"),
        "{head}"
    );
    assert!(head.contains("x-team: of "), "{head}");
    assert_eq!(
        (
            &body["model"],
            &body["temperature"],
            &body["max_tokens"],
            &body["top_k"]
        ),
        (&json!("small"), &json!(0.5), &json!(9), &json!(3))
    );
    let system = body["messages"][0]["content"].as_str().unwrap();
    assert!(system.contains("<<<CALL:"), "{system}");
    assert_eq!(requests[1].json()["model"], "tiny-1");
}

/// What a worker would ignore is refused by name.
#[test]
fn unsupported_keys_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    std::fs::write(directory.path().join("tools.toml"), TOOLS).unwrap();
    let start = |tables: &str, options: &[&str]| {
        let mut all = configured(directory.path(), tables, "any").to_vec();
        all.extend(options.iter().map(|option| (*option).to_owned()));
        let all: Vec<&str> = all.iter().map(String::as_str).collect();
        // Otherwise it would serve.
        let mut command = started(directory.path(), 1, &all);
        command.arg("--identity-key").arg("none");
        let output = command.stderr(Stdio::piped()).output().unwrap();
        assert!(!output.status.success());
        String::from_utf8(output.stderr).unwrap()
    };
    let model = "[models.any]\nreplay = 'none.jsonl'\n";
    for (key, tables) in [
        ("`mcp`", "[mcp.servers.files]\ncommand = 'none'\n"),
        ("`agents`", "[agents.one]\nsystem = 'Be one.'\n"),
        (
            "`limits.on_no_tool_call`",
            "[limits]\non_no_tool_call = 'remind'\n",
        ),
        ("`limits.time`", "[limits]\ntime = '10m'\n"),
        ("`builtin`", "[builtin]\ndirectory = '.'\n"),
    ] {
        let tables = format!("{model}{tables}");
        let refused = start(&tables, &[]);
        let expected = format!("durable conversations do not support {key};");
        assert!(refused.contains(&expected), "{refused}");
        let ignored = start(&tables, &["--ignore-unsupported"]);
        let expected = format!("no effect on durable conversations: {key}\n");
        assert!(ignored.contains(&expected), "{ignored}");
    }
    let refused = start(&format!("{model}keyed = true\n"), &[]);
    assert!(refused.contains("support `models.any.keyed`;"), "{refused}");
}
