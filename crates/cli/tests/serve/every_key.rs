//! One configuration: each command reads a file with every key of a model and of the gateway.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{Serving, answer, plaincall, repeating};

/// A file with every key of the gateway and of a model, which the tests of both packages and of the durable worker read too.
const EVERY_KEY: &str = include_str!("../../../../testing/every_key.toml");

#[test]
fn every_key_is_read_by_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let url = repeating();
    let text = EVERY_KEY.replace("{url}", &url);
    let schema = plaincall_config::settings::schema();
    let schema = &schema["properties"];
    for table in [&schema["models"]["additionalProperties"], &schema["serve"]] {
        for key in table["properties"].as_object().unwrap().keys() {
            let lines = [
                format!("\n{key} = "),
                format!(".{key}]\n"),
                format!(".{key}]]\n"),
            ];
            let has = lines.iter().any(|line| text.contains(line));
            assert!(has, "add `{key}` to testing/every_key.toml");
        }
    }
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let file = write("config.toml", &text);
    write("key", "key-of-the-file");
    write("keys", "key-of-a-client-1");
    write("secret", "0123456789abcdef");
    write("replies.jsonl", "\"A recorded reply.\"\n");
    let variables = [("TEAM", "blue"), ("KEY", "key-of-the-variable")];
    let serving = Serving::of(plaincall().args(["--config", &file]).envs(variables));
    let ask = |model: &str| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
        command
            .env_clear()
            .envs(variables)
            .current_dir(folder.path());
        command.args(["ask", "Hello?", "--config", &file, "--model", model]);
        let output = command.output().unwrap();
        String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned()
    };
    let key = "authorization: Bearer key-of-a-client-1\r\n";
    let serve = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello?"}]});
        let (_, body) = answer(serving.ask("POST /v1/chat/completions", key, &body.to_string()));
        body.replace("\\\"", "\"")
    };
    for (model, parts) in [
        (
            "full",
            &[
                "x-team: ",
                r#""model":"small""#,
                r#""temperature":0.5"#,
                r#""max_tokens":9"#,
                r#""top_k":3"#,
            ][..],
        ),
        ("tiny-1", &[r#""model":"tiny-1""#]),
        ("recorded", &["A recorded reply."]),
    ] {
        for shown in [ask(model), serve(model)] {
            for part in parts {
                assert!(shown.contains(part), "{model}: {part}: {shown}");
            }
        }
    }
    let failed = ask("tiny-*");
    assert!(failed.contains("unknown model `tiny-*`"), "{failed}");
    serving.signal(rustix::process::Signal::INT);
    let (_, _, notes) = serving.ended();
    assert!(notes.contains("the model `other` is not served"), "{notes}");
}

/// A table without a server is for `serve --upstream`.
#[test]
fn a_model_without_a_server_cannot_be_asked() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, "[models.a]\nsyntax = 'emoji'\n").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command.env_clear().current_dir(folder.path());
    let output = command
        .args(["ask", "Hello?", "--config"])
        .arg(&file)
        .args(["--model", "a"])
        .output()
        .unwrap();
    let notes = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{notes}");
    assert!(
        notes.contains("the model `a`: its table has no `url`"),
        "{notes}"
    );
}

/// A table for all models of the gateway does not change models that need no table, and makes no name a model.
#[test]
fn a_table_for_all_models_is_for_no_provider() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("replies.jsonl"), "\"Recorded.\"\n").unwrap();
    for (table, model, expected) in [
        (
            "url = 'http://127.0.0.1:9/v1'",
            "replay:replies.jsonl",
            "Recorded.",
        ),
        ("keyed = true", "replay:replies.jsonl", "Recorded."),
        ("keyed = true", "nothing", "unknown model `nothing`"),
    ] {
        let file = folder.path().join("config.toml");
        fs::write(&file, format!("[models.'*']\n{table}\n")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
        command.env_clear().current_dir(folder.path());
        command.args(["ask", "Hello?", "--model", model, "--config"]);
        let output = command.arg(&file).output().unwrap();
        let shown = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
        assert!(shown.contains(expected), "{table}: {shown}");
    }
}
