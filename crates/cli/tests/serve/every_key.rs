//! One description of a model: each command reads every key of its table.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::Command;
use std::thread;

use serde_json::{Value, json};

use super::{Serving, answer, plaincall};

/// A server whose replies repeat the request, whole and as a stream. Returns its base URL.
fn repeating() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let (mut request, mut length) = (String::new(), 0);
            while !request.ends_with("\r\n\r\n") && reader.read_line(&mut request).unwrap() > 0 {
                let last = request.lines().last().unwrap_or_default().to_lowercase();
                if let Some(value) = last.strip_prefix("content-length:") {
                    length = value.trim().parse().unwrap();
                }
            }
            let mut body = vec![0; length];
            reader.read_exact(&mut body).unwrap();
            request.push_str(&String::from_utf8(body.clone()).unwrap());
            let is_stream =
                serde_json::from_slice(&body).is_ok_and(|body: Value| body["stream"] == true);
            let message = json!({"role": "assistant", "content": request});
            let (kind, body) = if is_stream {
                let chunk =
                    json!({"choices": [{"index": 0, "delta": message, "finish_reason": "stop"}]});
                (
                    "text/event-stream",
                    format!("data: {chunk}\n\ndata: [DONE]\n\n"),
                )
            } else {
                let choice = json!({"index": 0, "message": message, "finish_reason": "stop"});
                ("application/json", json!({"choices": [choice]}).to_string())
            };
            let length = body.len();
            let _ = write!(
                reader.get_mut(),
                "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    url
}

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
