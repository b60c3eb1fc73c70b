//! `plaincall serve` as a process: its messages, answers and exit status.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

mod client;
mod coding_agents;
mod configured;
mod documents;
mod every_key;
mod key_limits;
mod reload;
mod servers;

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Child, ChildStderr, ChildStdout, Command, Stdio};
use std::sync::mpsc;
use std::thread;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tempfile::TempDir;

/// The example of the README.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gateway");

struct Serving {
    process: Child,
    log: BufReader<ChildStdout>,
    notes: BufReader<ChildStderr>,
    address: String,
}

fn plaincall() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command.arg("serve").env_clear();
    command
}

/// The upstream of the README.
fn replies() -> String {
    format!("replay:{EXAMPLE}/replies.jsonl")
}

/// Writes a configuration. Returns its folder, and its path.
fn configuration(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("config.toml");
    fs::write(&file, text).unwrap();
    let file = file.to_str().unwrap().to_owned();
    (folder, file)
}

impl Serving {
    fn start(upstream: &str, options: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = plaincall();
        command.args(["--listen", "127.0.0.1:0", "--upstream", upstream]);
        Self::of(command.args(options).envs(environment.iter().copied()))
    }

    /// Starts it with a configuration, and recorded replies for all models without a server.
    fn configured(text: &str) -> (TempDir, Self) {
        let (folder, file) = configuration(text);
        let serving = Self::start(&replies(), &["--config", &file], &[]);
        (folder, serving)
    }

    fn of(command: &mut Command) -> Self {
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let mut notes = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        notes.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("note: listening on http://")
            .and_then(|rest| rest.split_once("/v1 "));
        let address = address.expect(&line).0.to_owned();
        let log = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            log,
            notes,
            address,
        }
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request with these headers.
    fn ask(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
        );
        stream.write_all((head + body).as_bytes()).unwrap();
        stream
    }

    /// Returns the status line and the body of the answer to a file of the example.
    fn post(&self, headers: &str, file: &str) -> (String, String) {
        let body = fs::read_to_string(format!("{EXAMPLE}/{file}")).unwrap();
        answer(self.ask("POST /v1/chat/completions", headers, &body))
    }

    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.process), signal).unwrap();
    }

    /// Waits for the end, and returns the status, the lines of the log and the notes.
    fn ended(mut self) -> (Option<i32>, Vec<String>, String) {
        let mut notes = String::new();
        self.notes.read_to_string(&mut notes).unwrap();
        let status = self.process.wait().unwrap().code();
        (
            status,
            (&mut self.log).lines().map(Result::unwrap).collect(),
            notes,
        )
    }

    /// Ends the process, and returns the lines of its log.
    fn end(self) -> Vec<String> {
        self.signal(Signal::INT);
        let (status, lines, _) = self.ended();
        assert_eq!(status, Some(0));
        lines
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Returns the status line and the body of an answer.
fn answer(mut stream: TcpStream) -> (String, String) {
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    (head.lines().next().unwrap().to_owned(), body.to_owned())
}

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

#[test]
fn the_example_of_the_readme() {
    let serving = Serving::start(&replies(), &[], &[]);
    let (status, body) = serving.post("", "request.json");
    assert_eq!(status, "HTTP/1.1 200 OK");
    for piece in [
        r#""content":"Let me look "#,
        r#""function":{"name":"get_weather","arguments":""}"#,
        r#""finish_reason":"tool_calls""#,
        "data: [DONE]",
    ] {
        assert!(body.contains(piece), "{piece} in {body}");
    }
    let (status, body) = serving.post("", "result.json");
    assert_eq!(status, "HTTP/1.1 200 OK");
    let body: Value = serde_json::from_str(&body).unwrap();
    let message = &body["choices"][0]["message"]["content"];
    assert_eq!(
        message,
        "It is warm in Paris, 21 degrees, and cold in Oslo."
    );
    let lines = serving.end();
    assert_eq!(lines.len(), 2, "{lines:?}");
    let line: Value = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(
        (&line["status"], &line["calls"]),
        (&Value::from(200), &Value::from(2))
    );
}

#[test]
fn the_log_names_the_setting_for_replies_that_end_reasoning() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("replies.jsonl");
    fs::write(&file, "\"Hm.\\n</think>\\nDone.\"\n\"Done.\"\n").unwrap();
    let serving = Serving::start(&format!("replay:{}", file.display()), &[], &[]);
    serving.post("", "request.json");
    serving.post("", "result.json");
    let [first, second] = serving.end().try_into().unwrap();
    assert!(first.contains("set `in_reasoning = true`"), "{first}");
    assert!(!second.contains("hint"), "{second}");
}

#[test]
fn contents_are_logged_only_with_the_option() {
    let keys = [("PLAINCALL_KEYS", "key-number-one-1, word-of-mine-000")];
    for with_contents in [false, true] {
        let options: &[&str] = if with_contents {
            &["--log-contents"]
        } else {
            &[]
        };
        let serving = Serving::start(&replies(), options, &keys);
        assert_eq!(
            serving.post("", "request.json").0,
            "HTTP/1.1 401 Unauthorized"
        );
        let authorization = "authorization: Bearer word-of-mine-000\r\n";
        let (status, _) = serving.post(authorization, "request.json");
        assert_eq!(status, "HTTP/1.1 200 OK");
        let body =
            r#"{"messages":[{"role":"user","content":"Oslo, word-of-mine-000"}],"tools":[]}"#;
        let (status, _) = answer(serving.ask("POST /v1/chat/completions", authorization, body));
        assert_eq!(status, "HTTP/1.1 200 OK");
        serving.signal(Signal::INT);
        let (_, lines, notes) = serving.ended();
        assert_eq!(notes.contains("--log-contents"), with_contents, "{notes}");
        let log = lines.join("\n");
        for word in ["Oslo", "get_weather", "Let me look it up"] {
            assert_eq!(log.contains(word), with_contents, "{word} in {log}");
        }
        assert!(!log.contains("word-of-mine-000"), "{log}");
        let line: Value = serde_json::from_str(&lines[1]).unwrap();
        assert_eq!(line["model_requests"].is_array(), with_contents);
        assert_eq!(line["client_reply"].is_string(), with_contents);
    }
}

/// A server that accepts a request and never answers it; returns the first line of the request.
fn silent() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    thread::spawn(move || {
        let mut open = Vec::new();
        for stream in listener.incoming().flatten() {
            let mut line = String::new();
            let mut reader = BufReader::new(stream);
            let _ = reader.read_line(&mut line);
            if sender.send(line).is_err() {
                return;
            }
            open.push(reader);
        }
    });
    (url, requests)
}

#[test]
fn how_it_ends() {
    let refused = Some("HTTP/1.1 503 Service Unavailable");
    let (at_once, long) = ("drain_delay = 0", "drain_delay = '1h'");
    let (short, patient) = ("drain_timeout = '50ms'", "drain_timeout = '1h'");
    // Settings, signals, the exit status, and the response to the request that is in progress.
    for (settings, signals, status, response) in [
        (&[at_once, short][..], &[Signal::TERM][..], Some(1), refused),
        (&[long, short], &[Signal::INT], Some(1), refused),
        (&[long], &[Signal::TERM, Signal::INT], Some(130), None),
        (&[patient], &[Signal::INT, Signal::TERM], Some(143), None),
    ] {
        let (upstream, requests) = silent();
        let (_folder, file) = configuration(&format!("[serve]\n{}", settings.join("\n")));
        let mut serving = Serving::start(&upstream, &["--config", &file], &[]);
        let body = r#"{"messages":[]}"#;
        let mut asked = serving.ask("POST /v1/chat/completions", "", body);
        while !requests.recv().unwrap().starts_with("POST") {}
        for signal in signals {
            serving.signal(*signal);
            // The next one is sent after this one was received.
            let mut note = String::new();
            while !note.contains("shutting down: ")
                && serving.notes.read_line(&mut note).unwrap() > 0
            {}
        }
        let mut answer = String::new();
        let _ = asked.read_to_string(&mut answer);
        match response {
            Some(_) => assert_eq!(answer.lines().next(), response, "{settings:?}"),
            // In any order of shutdown, there is no successful response.
            None => assert!(!answer.contains("200 OK"), "{answer}"),
        }
        let (found, lines, notes) = serving.ended();
        assert_eq!(found, status, "{settings:?} {notes}");
        // A truncated request has a line too.
        assert_eq!(lines.len(), 1, "{settings:?} {lines:?}");
    }
}

#[test]
fn it_announces_its_end_and_still_answers() {
    let (_folder, serving) = Serving::configured("[serve]\ndrain_delay = '2s'");
    serving.signal(Signal::TERM);
    loop {
        let (status, body) = answer(serving.ask("GET /ready", "", ""));
        if body == "draining\n" {
            assert_eq!(status, "HTTP/1.1 503 Service Unavailable");
            break;
        }
    }
    assert_eq!(serving.post("", "request.json").0, "HTTP/1.1 200 OK");
    let (status, lines, _) = serving.ended();
    assert_eq!((status, lines.len()), (Some(0), 1));
}

/// Returns the message about wrong usage, and the exit status.
fn refused(arguments: &[&str]) -> (String, Option<i32>) {
    let output = plaincall().args(arguments).output().unwrap();
    (
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

#[test]
fn startup_errors() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = listener.local_addr().unwrap().to_string();
    let folder = tempfile::tempdir().unwrap();
    let lines = folder.path().join("replies.jsonl");
    fs::write(&lines, "\"Yes.\"\nHello\n").unwrap();
    let lines = format!("replay:{}", lines.display());
    let free = ["--listen", "127.0.0.1:0"];
    for (upstream, arguments, words, status) in [
        (
            "",
            &["--listen", "0.0.0.0:0"][..],
            "reachable from other machines",
            2,
        ),
        (
            "",
            &["--listen", "[::]:0"],
            "to allow this, use `--open`",
            2,
        ),
        (
            "",
            &["--listen", "192.0.2.1:1", "--open"],
            "this machine has no such address",
            1,
        ),
        (
            "",
            &["--listen", &taken],
            "choose another port with `--listen`",
            1,
        ),
        ("", &["--config", "/nowhere"], "cannot read /nowhere: ", 1),
        (
            "",
            &["--syntax", "emoji"],
            "`--syntax` was removed: use `--dialect` with `--upstream`, or set `syntax` in a table `[models.NAME]`",
            2,
        ),
        (
            "localhost:11434",
            &free,
            "did you mean http://localhost:11434?",
            2,
        ),
        ("", &["--listen", "8090"], "such as 127.0.0.1:8090", 2),
        (
            "",
            &["--listen", "localhost:8091"],
            "such as 127.0.0.1:8091",
            2,
        ),
        ("http://me:word@a/v1", &free, "a user name or a password", 2),
        ("replay:/nowhere", &free, "cannot read /nowhere: ", 1),
        (&lines, &free, "line 2: invalid JSON at column 1", 1),
    ] {
        let upstream = match upstream {
            "" => "http://127.0.0.1:1/v1",
            upstream => upstream,
        };
        let (message, found) = refused(&[&["--upstream", upstream], arguments].concat());
        assert!(message.contains(words), "{words}: {message}");
        assert!(!message.contains("me:word"), "{message}");
        assert_eq!(found, Some(status), "{message}");
    }
}

#[test]
fn a_source_of_keys_that_holds_none_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let (empty, short) = (file("empty", " \n\n"), file("short", "fifteen bytes..\n"));
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    let model = "[models.a]\nurl = 'http://127.0.0.1:1/v1'\nkey_file";
    for (key, file, words) in [
        ("[serve]\nkeys_file", &empty, "empty has no key; add one"),
        (
            "[serve]\nkeys_file",
            &short,
            "short:1:1: this key has only 7 characters",
        ),
        (model, &empty, "empty has no key"),
        ("[serve]\nsecret_file", &empty, "empty has no secret"),
        ("[serve]\nsecret_file", &short, "has only 15 bytes"),
    ] {
        let (_folder, configuration) = configuration(&format!("{key} = '{file}'"));
        let upstream: &[&str] = if key == model { &[] } else { &upstream };
        let (message, status) = refused(&[upstream, &["--config", &configuration]].concat());
        assert!(message.contains(words), "{message}");
        assert_eq!(status, Some(2), "{message}");
    }
    for (name, value) in [
        ("PLAINCALL_KEYS", ""),
        ("PLAINCALL_KEYS", " , "),
        ("PLAINCALL_UPSTREAM_KEY", ""),
        ("PLAINCALL_SECRET", " "),
    ] {
        let output = plaincall()
            .args(upstream)
            .env(name, value)
            .output()
            .unwrap();
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.contains(&format!("{name} has no ")), "{message}");
        assert_eq!(output.status.code(), Some(2));
    }
}

#[test]
fn keys_of_a_file_are_its_lines() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("keys");
    fs::write(&path, "first-key,half-of-it\n\n second-key-00000 \r\n").unwrap();
    let file = ("PLAINCALL_SERVE_KEYS_FILE", path.to_str().unwrap());
    let keys = ("PLAINCALL_KEYS", "third-key-000000");
    let serving = Serving::start(&replies(), &[], &[file, keys]);
    for (key, status) in [
        ("first-key,half-of-it", "200 OK"),
        ("second-key-00000", "200 OK"),
        ("first-key", "401 Unauthorized"),
        ("half-of-it", "401 Unauthorized"),
        ("third-key-000000", "401 Unauthorized"),
    ] {
        let headers = format!("authorization: Bearer {key}\r\n");
        let (found, _) = answer(serving.ask("GET /v1/models", &headers, ""));
        assert_eq!(found, format!("HTTP/1.1 {status}"), "{key}");
    }
    serving.end();
}

/// Shells start with a low limit; each connection is one file.
#[test]
fn as_many_files_as_the_system_lets_it_have() {
    let mut command = Command::new("sh");
    // The soft limit, which a process may raise, and the hard limit.
    let limits = "ulimit -Sn 60; ulimit -Hn 128; exec \"$0\" \"$@\"";
    command.args(["-c", limits, env!("CARGO_BIN_EXE_plaincall"), "serve"]);
    command.args(["--listen", "127.0.0.1:0", "--upstream", &replies()]);
    let serving = Serving::of(command.env_clear());
    // Where the system reports the limits.
    let limits = fs::read_to_string(format!("/proc/{}/limits", serving.process.id()));
    if let Ok(limits) = limits {
        let open = limits
            .lines()
            .find(|line| line.starts_with("Max open files"));
        let soft = open.and_then(|line| line.split_whitespace().nth(3));
        assert_eq!(soft, Some("128"), "{limits}");
    }
    serving.signal(Signal::INT);
    let (status, _, notes) = serving.ended();
    assert!(notes.contains("the open file limit of 128"), "{notes}");
    assert_eq!(status, Some(0));
}

/// Requests that announce a body and send none or little of it take no memory for the rest.
#[cfg(target_os = "linux")]
#[test]
fn an_announced_body_takes_no_memory() {
    const REQUESTS: u64 = 100;
    const ANNOUNCED: usize = 1 << 20;
    let serving = Serving::start(&replies(), &[], &[]);
    // Resident memory, in bytes.
    let memory = || {
        let file = format!("/proc/{}/status", serving.process.id());
        let text = fs::read_to_string(file).unwrap();
        let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kilobytes = line.unwrap().trim().trim_end_matches(" kB");
        kilobytes.parse::<u64>().unwrap() << 10
    };
    for sent in ["", " "] {
        let before = memory();
        let clients: Vec<TcpStream> = (0..REQUESTS)
            .map(|_| {
                let mut stream = serving.connect();
                let head = "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\n";
                let head = format!("{head}content-length: {ANNOUNCED}\r\n\r\n{sent}");
                stream.write_all(head.as_bytes()).unwrap();
                stream
            })
            .collect();
        let (mut metrics, active) = (String::new(), format!("requests_active {REQUESTS}"));
        for _ in 0..1000 {
            metrics = answer(serving.ask("GET /metrics", "", "")).1;
            if metrics.contains(&active) {
                break;
            }
            thread::yield_now();
        }
        assert!(metrics.contains(&active), "{metrics}");
        let each = memory().saturating_sub(before) / REQUESTS;
        assert!(each < 256 << 10, "{each} bytes for each request");
        drop(clients);
    }
    serving.end();
}

/// A container often has no certificates; there is an error only if they are needed.
#[test]
fn without_certificates() {
    let none = [
        ("SSL_CERT_FILE", "/dev/null"),
        ("SSL_CERT_DIR", "/nonexistent"),
    ];
    let (_folder, file) = configuration("[serve]\ndrain_delay = 0");
    let serving = Serving::start("http://127.0.0.1:1/v1", &["--config", &file], &none);
    serving.end();
    let mut command = plaincall();
    command.args(["--listen", "127.0.0.1:0", "--upstream"]);
    command.arg("https://127.0.0.1:1/v1").envs(none);
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success());
    assert!(message.contains("TLS is not available"), "{message}");
}
