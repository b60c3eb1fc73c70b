//! Finding model servers: `plaincall serve` without an upstream, and `plaincall models`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::{Serving, plaincall, replies};

/// A model server that lists the key that it gets as a model, and answers a request with the request. Ends with the test. Returns its
/// address.
pub(super) fn ollama() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let (mut request, mut bytes) = (String::new(), vec![0; 4096]);
            while !request.contains("\r\n\r\n")
                || request.starts_with("POST ") && !request.ends_with('}')
            {
                let length = stream.read(&mut bytes).unwrap();
                assert_ne!(length, 0, "{request}");
                request += &String::from_utf8_lossy(&bytes[..length]);
            }
            let key = request
                .lines()
                .find_map(|line| line.strip_prefix("authorization: Bearer "));
            let key = key.unwrap_or("none");
            let lists = ["GET /v1/models ", "GET /v1/models?q=secret "];
            let (status, body) = if lists.iter().any(|list| request.starts_with(list)) {
                let list = format!(r#"{{"data":[{{"id":"small:latest"}},{{"id":"key-{key}"}}]}}"#);
                ("200 OK", list)
            } else if let Some((_, body)) = request.split_once("\r\n\r\n")
                && request.starts_with("POST /v1/chat/completions ")
            {
                ("200 OK", body.to_owned())
            } else {
                ("404 Not Found", String::new())
            };
            let length = body.len();
            let _ = write!(
                stream,
                "HTTP/1.1 {status}\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n{body}"
            );
        }
    });
    address
}

#[test]
fn serve_finds_a_local_server_and_prints_the_variables() {
    let ollama = ollama();
    let mut command = plaincall();
    command.env("OLLAMA_HOST", &ollama).stderr(Stdio::piped());
    let mut process = command.stdout(Stdio::null()).spawn().unwrap();
    let notes = BufReader::new(process.stderr.take().unwrap()).lines();
    let mut lines = Vec::new();
    for line in notes.map(Result::unwrap) {
        let is_last = line.starts_with("  export ANTHROPIC_AUTH_TOKEN=");
        lines.push(line);
        if is_last {
            break;
        }
    }
    let found =
        format!("note: found Ollama at http://{ollama}/v1 with 2 models: small:latest, key-none");
    assert_eq!(lines[0], found);
    let listening = lines
        .iter()
        .find_map(|line| line.strip_prefix("note: listening on "))
        .unwrap();
    let (url, upstream) = listening.split_once(" with tool calls for ").unwrap();
    assert_eq!(upstream, format!("http://{ollama}/v1"));
    let set = &lines[lines.len() - 4..];
    let origin = url.strip_suffix("/v1").unwrap();
    assert_eq!(
        set,
        [
            format!("  export OPENAI_BASE_URL={url}"),
            "  export OPENAI_API_KEY=plaincall".to_owned(),
            format!("  export ANTHROPIC_BASE_URL={origin}"),
            "  export ANTHROPIC_AUTH_TOKEN=plaincall".to_owned(),
        ]
    );
    kill_process(Pid::from_child(&process), Signal::INT).unwrap();
    assert_eq!(process.wait().unwrap().code(), Some(0));
}

/// Runs `plaincall models` with a configuration, and returns its output and its messages.
fn models(configuration: &str, options: &[&str], variables: &[(&str, &str)]) -> (String, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, configuration).unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command
        .env_clear()
        .args(["models", "--no-project", "--config"])
        .arg(&file)
        .args(options)
        .envs(variables.iter().copied());
    let output = command.output().unwrap();
    let messages = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(0), "{messages}");
    (String::from_utf8(output.stdout).unwrap(), messages)
}

#[test]
fn models_lists_what_is_configured_and_what_servers_offer() {
    let ollama = ollama();
    let gateway = Serving::start(&replies(), &[], &[]);
    let closed = TcpListener::bind("127.0.0.1:0").unwrap();
    let closed_address = closed.local_addr().unwrap().to_string();
    drop(closed);
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_address = silent.local_addr().unwrap();
    let configuration = format!(
        "model = 'work'
[models.work]
url = 'http://{ollama}/v1?q=secret'
model = 'small'
[models.missing]
url = 'http://{ollama}/v1'
key_env = 'OTHER_KEY'
[models.recorded]
url = 'http://{}/v1'
model = 'replay'
[models.closed]
url = 'http://{closed_address}/v1'
[models.silent]
url = 'http://{silent_address}/v1'
[models.keyless]
url = 'http://{ollama}/keyless/v1'
key_env = 'NOT_SET'
[models.file]
replay = 'replies.jsonl'
",
        gateway.address
    );
    let variables = [("OLLAMA_HOST", ollama.as_str()), ("OTHER_KEY", "k1")];
    let (output, messages) = models(&configuration, &["--json"], &variables);
    assert_eq!(messages, "");
    assert!(!output.contains("secret"), "{output}");
    let listing: Value = serde_json::from_str(&output).unwrap();
    assert_eq!(listing["default"], "work");
    let offered = |name: &str| {
        let models = listing["models"].as_array().unwrap();
        let model = models.iter().find(|model| model["name"] == name);
        model.unwrap()["is_offered"].clone()
    };
    assert_eq!(offered("work"), true);
    assert_eq!(offered("missing"), false);
    assert_eq!(offered("recorded"), true);
    for unknown in ["closed", "silent", "keyless", "file"] {
        assert_eq!(offered(unknown), Value::Null, "{unknown}");
    }
    let server = |url: &str| {
        let servers = listing["servers"].as_array().unwrap();
        let url = format!("http://{url}");
        let server = servers.iter().find(|server| server["url"] == url);
        server.expect(&url).clone()
    };
    assert_eq!(
        server(&format!("{}/v1", gateway.address))["models"][0],
        "replay"
    );
    let error = |url: &str| server(url)["error"].as_str().unwrap().to_owned();
    let refused = error(&format!("{closed_address}/v1"));
    assert!(refused.contains("refused"), "{refused}");
    assert_eq!(
        error(&format!("{silent_address}/v1")),
        "it has not started to respond for 3 seconds"
    );
    let keyless = error(&format!("{ollama}/keyless/v1"));
    assert!(keyless.contains("set the variable NOT_SET"), "{keyless}");
    let asked: Vec<&Value> = listing["servers"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|server| server["url"] == format!("http://{ollama}/v1"))
        .map(|server| &server["models"][1])
        .collect();
    // Once without a key, and once with that of the other model.
    assert_eq!(asked, ["key-k1", "key-none"]);
}

#[test]
fn models_of_agents_are_listed_too() {
    let configuration = "[agents.a]\nmodel = 'replay:a.jsonl'\n[agents.b]\nmodel = 'b'\n";
    let (output, messages) = models(configuration, &[], &[("OLLAMA_HOST", "127.0.0.1:9")]);
    let expected = "Configured models:
  replay:a.jsonl  replays a.jsonl

Agents:
  a  replay:a.jsonl
  b  b (unknown model)
";
    assert!(output.starts_with(expected), "{output}");
    assert!(!messages.contains("no models"), "{messages}");
}

/// A server without a table is listed with the options that select its models.
#[test]
fn models_states_how_to_use_a_server_that_is_not_configured() {
    let ollama = ollama();
    let (output, _) = models("", &[], &[("OLLAMA_HOST", &ollama)]);
    let expected = format!(
        "Servers:\n  Ollama at http://{ollama}/v1, with `--model ollama:NAME`\n    small:latest\n"
    );
    assert!(output.starts_with(&expected), "{output}");
}

#[test]
fn models_marks_the_default_and_models_that_are_not_offered() {
    let ollama = ollama();
    let configuration = format!(
        "model = 'b'\n[models.a]\nurl = 'http://{ollama}/v1'\n[models.b]\nurl = 'http://{ollama}/v1'\nmodel = 'small'\n\
         [agents.careful]\nmodel = 'a'\n[agents.quick]\n"
    );
    let (output, messages) = models(&configuration, &[], &[("OLLAMA_HOST", &ollama)]);
    assert_eq!(messages, "");
    let expected = format!(
        "Configured models:
  a  a at http://{ollama}/v1 (the server does not offer it)
* b  small at http://{ollama}/v1

Agents:
  careful  a
  quick    b

Servers:
  Ollama at http://{ollama}/v1
    small:latest
    key-none
"
    );
    assert!(output.starts_with(&expected), "{output}");
}
