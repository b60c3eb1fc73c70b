//! `plaincall serve` as a process: what it says, what it answers, how it ends.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a panic is how a test fails"
)]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

/// The example of the README.
const EXAMPLE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gateway");

struct Serving {
    process: Child,
    log: BufReader<ChildStdout>,
    address: String,
}

fn plaincall() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_plaincall"));
    command.arg("serve").env_clear();
    command.stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

impl Serving {
    fn start(environment: &[(&str, &str)]) -> Self {
        let mut process = plaincall()
            .args([
                "--listen",
                "127.0.0.1:0",
                "--drain-delay",
                "0",
                "--upstream",
            ])
            .arg(format!("replay:{EXAMPLE}/replies.jsonl"))
            .envs(environment.iter().copied())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(process.stderr.take().unwrap());
        let mut line = String::new();
        said.read_line(&mut line).unwrap();
        let address = line
            .strip_prefix("note: http://")
            .and_then(|rest| rest.split_once("/v1 "));
        let address = address.expect(&line).0.to_owned();
        let log = BufReader::new(process.stdout.take().unwrap());
        Self {
            process,
            log,
            address,
        }
    }

    /// The status line and the body of the answer.
    fn post(&self, headers: &str) -> (String, String) {
        let body = fs::read_to_string(format!("{EXAMPLE}/request.json")).unwrap();
        let mut stream = TcpStream::connect(&self.address).unwrap();
        let length = body.len();
        let head = format!(
            "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
        );
        stream.write_all((head + &body).as_bytes()).unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.lines().next().unwrap();
        (status.to_owned(), body.to_owned())
    }

    /// Ends it, and gives the lines of its log.
    fn end(mut self, signal: Signal) -> Vec<String> {
        let id = Pid::from_child(&self.process);
        kill_process(id, signal).unwrap();
        assert!(self.process.wait().unwrap().success());
        self.log.lines().map(Result::unwrap).collect()
    }
}

#[test]
fn it_answers_says_so_and_ends() {
    for signal in [Signal::TERM, Signal::INT] {
        let serving = Serving::start(&[]);
        let (status, body) = serving.post("");
        assert_eq!(status, "HTTP/1.1 200 OK");
        for piece in [
            r#""content":"I look it up"#,
            r#""function":{"name":"get_weather","arguments":""}"#,
            r#""finish_reason":"tool_calls""#,
            "data: [DONE]",
        ] {
            assert!(body.contains(piece), "{piece} in {body}");
        }
        let lines = serving.end(signal);
        assert_eq!(lines.len(), 1, "{lines:?}");
        let line: Value = serde_json::from_str(&lines[0]).unwrap();
        assert_eq!(
            (&line["status"], &line["calls"]),
            (&Value::from(200), &Value::from(2))
        );
        assert!(!lines[0].contains("Oslo"), "{lines:?}");
    }
}

#[test]
fn keys_come_from_the_environment() {
    let serving = Serving::start(&[("PLAINCALL_KEYS", "one, two")]);
    assert_eq!(serving.post("").0, "HTTP/1.1 401 Unauthorized");
    let (status, _) = serving.post("authorization: Bearer two\r\n");
    assert_eq!(status, "HTTP/1.1 200 OK");
    serving.end(Signal::TERM);
}

/// What is said of wrong usage, and the exit status.
fn refused(arguments: &[&str]) -> (String, Option<i32>) {
    let output = plaincall().args(arguments).output().unwrap();
    (
        String::from_utf8(output.stderr).unwrap(),
        output.status.code(),
    )
}

#[test]
fn what_it_refuses() {
    let upstream = ["--upstream", "http://127.0.0.1:1/v1"];
    for (arguments, words, status) in [
        (
            &["--listen", "0.0.0.0:0"][..],
            "anybody there could use the model",
            2,
        ),
        (&["--listen", "[::]:0"], "`--open` does it all the same", 2),
        (&["--start-prefix", "!"], "too short", 2),
        (
            &["--listen", "192.0.2.1:1", "--open"],
            "cannot listen on 192.0.2.1:1",
            1,
        ),
        (&["--keys", "/nowhere"], "/nowhere: ", 1),
    ] {
        let (said, found) = refused(&[&upstream[..], arguments].concat());
        assert!(said.contains(words), "{said}");
        assert_eq!(found, Some(status), "{said}");
    }
    let (said, status) = refused(&["--upstream", "localhost:11434", "--listen", "127.0.0.1:0"]);
    assert!(said.contains("begins with http://"), "{said}");
    assert_eq!(status, Some(1));
    let (said, status) = refused(&["--upstream", "replay:/nowhere"]);
    assert!(said.contains("/nowhere: "), "{said}");
    assert_eq!(status, Some(1));
}
