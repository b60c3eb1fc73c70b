//! One description of a model: each command reads every key of its table.

use std::fs;
use std::process::Command;

use serde_json::json;

use super::{Serving, answer, plaincall, repeating};

/// A file with every key of a model.
fn tables(url: &str) -> String {
    format!(
        r#"
[models.full]
url = "{url}"
kind = "openai"
model = "small"
key_file = "key"
headers = {{ x-team = "of ${{TEAM}}" }}
temperature = 0.5
max_tokens = 9
extra = {{ top_k = 3 }}
syntax = "block"
start_prefix = "<<<CALL:"
end_prefix = "<<<END"
arg_prefix = "<<<ARG:"
reasoning = ["<r>", "</r>"]
in_reasoning = false
unclosed = "run"
keyed = false
mode = "text"
constrain = "never"
arguments = "stream"
repair_rounds = 1
developer_role = true
listed_tools = ["*"]
hidden_tools = ["no"]
description_length = 80

[models."tiny-*"]
url = "{url}"
key_env = "KEY"
syntax = "emoji"
self_closing = true

[models.recorded]
replay = "replies.jsonl"

[models.other]
url = "{url}"
kind = "anthropic"
"#
    )
}

#[test]
fn every_key_of_a_model_is_read_by_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let url = repeating();
    let text = tables(&url);
    let schema = plaincall_config::settings::schema();
    let keys = &schema["properties"]["models"]["additionalProperties"]["properties"];
    for key in keys.as_object().unwrap().keys() {
        let line = format!("\n{key} = ");
        assert!(text.contains(&line), "add `{key}` to this test");
    }
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let file = write("config.toml", &text);
    write("key", "key-of-the-file");
    write("replies.jsonl", "\"A recorded reply.\"\n");
    let variables = [("TEAM", "blue"), ("KEY", "key-of-the-variable")];
    let serving = Serving::of(
        plaincall()
            .args(["--listen", "127.0.0.1:0", "--models", &file])
            .envs(variables),
    );
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
    let serve = |model: &str| {
        let body = json!({"model": model, "messages": [{"role": "user", "content": "Hello?"}]});
        let (_, body) = answer(serving.ask("POST /v1/chat/completions", "", &body.to_string()));
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
        notes.contains("the table of the model `a` has no `url`"),
        "{notes}"
    );
}
