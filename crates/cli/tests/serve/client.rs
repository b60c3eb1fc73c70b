//! `plaincall serve -- COMMAND`: the command's variables, signals and exit status.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::json;

use super::servers::ollama;
use super::{EXAMPLE, answer, configuration, plaincall, replies};

/// Starts a gateway for a script.
fn start(script: &str, options: &[&str], variables: &[(&str, &str)]) -> Child {
    let mut command = plaincall();
    command.args(["--upstream", &replies()]).args(options);
    command.args(["--", "/bin/sh", "-c", script]);
    piped(command.envs(variables.iter().copied()))
}

fn piped(command: &mut Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    command.stderr(Stdio::piped()).spawn().unwrap()
}

/// Waits for the end, and returns the exit status, standard output and standard error.
fn ended(child: Child) -> (Option<i32>, String, String) {
    let output = child.wait_with_output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

/// Reads the address that the script of a command writes first.
fn address(child: &mut Child) -> (BufReader<ChildStdout>, String) {
    let mut output = BufReader::new(child.stdout.take().unwrap());
    let mut url = String::new();
    output.read_line(&mut url).unwrap();
    let address = url.trim().strip_prefix("http://").unwrap();
    (output, address.strip_suffix("/v1").unwrap().to_owned())
}

fn post(address: &str, path: &str, body: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(stream, "POST {path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer plaincall\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    answer(stream)
}

#[test]
fn the_command_is_a_client_and_its_status_is_the_status() {
    let mut child = start("echo $OPENAI_BASE_URL; read line; exit 7", &[], &[]);
    let (mut output, address) = address(&mut child);
    let body = std::fs::read_to_string(format!("{EXAMPLE}/request.json")).unwrap();
    let (status, body) = post(&address, "/v1/chat/completions", &body);
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(body.contains("get_weather"), "{body}");
    // A client of Anthropic's API adds the rest of the path itself.
    let body = r#"{"model":"replay","max_tokens":99,"messages":[{"role":"user","content":"Hi"}]}"#;
    let (status, body) = post(&address, "/v1/messages", body);
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(body.contains(r#""type":"message""#), "{body}");
    child.stdin.take().unwrap().write_all(b"end\n").unwrap();
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    let (status, _, notes) = ended(child);
    // Standard output belongs to the command: there is no access log.
    assert_eq!((status, rest.as_str()), (Some(7), ""), "{notes}");
    assert!(TcpStream::connect(address).is_err(), "it still listens");
}

/// Coding agents ask for a model of their makers.
#[test]
fn the_command_gets_a_model_that_the_server_has() {
    let mut command = plaincall();
    command.env("OLLAMA_HOST", ollama());
    let script = "echo $OPENAI_BASE_URL; read line";
    let mut child = piped(command.args(["--", "/bin/sh", "-c", script]));
    let (_output, address) = address(&mut child);
    for (asked, sent) in [("gpt-5.6", "small:latest"), ("key-none", "key-none")] {
        let body = json!({"model": asked, "messages": [{"role": "user", "content": "Hi"}]});
        let (status, answer) = post(&address, "/v1/chat/completions", &body.to_string());
        assert_eq!(status, "HTTP/1.1 200 OK");
        assert!(answer.contains(&format!(r#""model":"{sent}""#)), "{answer}");
    }
    child.stdin.take().unwrap().write_all(b"end\n").unwrap();
    let (_, _, notes) = ended(child);
    assert!(notes.contains("note: requests for any other model get `small:latest`\n"));
}

#[test]
fn the_command_gets_the_variables_and_no_secrets() {
    let secret = "0123456789abcdef";
    let own = [
        ("PLAINCALL_KEYS", "first-key-000000,second-key-00000"),
        ("PLAINCALL_UPSTREAM_KEY", "upstream-key"),
        ("PLAINCALL_SECRET", secret),
    ];
    let table: [(&[(&str, &str)], &str); 6] = [
        // Recorded replies need no key.
        (&[], "plaincall"),
        (&[("ANTHROPIC_API_KEY", "never sent")], "plaincall"),
        (&[("OLLAMA_API_KEY", "never sent")], "plaincall"),
        (&[("OPENAI_API_KEY", "mine")], "mine"),
        (
            &[("OPENAI_API_KEY", "mine"), ("PLAINCALL_UPSTREAM_KEY", "up")],
            "plaincall",
        ),
        (&own, "first-key-000000"),
    ];
    for (variables, key) in table {
        let script = "env; test \"$OPENAI_BASE_URL\" = \"$OPENAI_API_BASE\" && \
            test \"$OPENAI_BASE_URL\" = \"$ANTHROPIC_BASE_URL/v1\" && test \"$OPENAI_BASE_URL\" = \"$OLLAMA_HOST/v1\"";
        let (status, output, notes) = ended(start(script, &[], variables));
        assert_eq!(status, Some(0), "{notes}");
        let has = |line: &str| output.lines().any(|found| found == line);
        for variable in ["OPENAI_API_KEY", "ANTHROPIC_AUTH_TOKEN", "OLLAMA_API_KEY"] {
            assert!(has(&format!("{variable}={key}")), "{output}");
        }
        assert!(!output.contains("never sent"), "{output}");
        assert!(!output.contains("PLAINCALL_"), "{output}");
        assert!(
            !notes.contains("first-key") && !notes.contains("mine"),
            "{notes}"
        );
    }
}

/// The variables with keys and headers for model servers are secrets too. The key of one server is not for another.
#[test]
fn the_command_gets_no_variable_of_the_models() {
    let text = "[models.a]\nurl = 'https://api.openai.com/v1'\n\
        [models.b]\nurl = 'http://127.0.0.1:9/v1'\nkey_env = 'EXAMPLE_KEY'\n\
        headers = { x-team = 'a ${TEAM}', x-other = '${OTHER:-none}' }\n";
    let (_folder, file) = configuration(text);
    let variables = [
        ("OPENAI_API_KEY", "hidden-1"),
        ("EXAMPLE_KEY", "hidden-2"),
        ("TEAM", "hidden-3"),
        ("UNRELATED", "visible"),
    ];
    // Also the variables of tables that are not served.
    for upstream in [None, Some("--upstream=http://127.0.0.1:9/v1")] {
        let mut command = plaincall();
        command.args(["--config", &file]).args(upstream);
        command.args(["--", "env"]).envs(variables);
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let (status, output, notes) = ended(command.spawn().unwrap());
        assert_eq!(status, Some(0), "{notes}");
        assert!(!output.contains("hidden"), "{output}");
        for line in [
            "OPENAI_API_KEY=plaincall",
            "ANTHROPIC_AUTH_TOKEN=plaincall",
            "UNRELATED=visible",
        ] {
            assert!(output.lines().any(|found| found == line), "{output}");
        }
    }
}

#[test]
fn signals_are_forwarded() {
    for (signal, name) in [
        (Signal::TERM, "TERM"),
        (Signal::INT, "INT"),
        (Signal::HUP, "HUP"),
    ] {
        let script = format!("trap 'exit 5' {name}; echo ready; while :; do sleep 0.05; done");
        let mut child = start(&script, &[], &[]);
        let mut output = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        output.read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        kill_process(Pid::from_child(&child), signal).unwrap();
        let (status, _, notes) = ended(child);
        assert_eq!(status, Some(5), "{name}: {notes}");
    }
}

#[test]
fn a_command_that_a_signal_ends_gives_its_number() {
    let (status, ..) = ended(start("kill -KILL $$", &[], &[]));
    assert_eq!(status, Some(128 + 9));
}

#[test]
fn a_command_that_cannot_be_started_has_the_status_of_a_shell() {
    for (program, expected) in [("no-such-program-here", 127), ("/etc/passwd", 126)] {
        let mut command = plaincall();
        command.args(["--upstream", &replies(), "--", program]);
        let (status, output, notes) = ended(piped(&mut command));
        assert_eq!((status, output.as_str()), (Some(expected), ""));
        let message = format!("error: cannot start {program}: ");
        assert!(notes.contains(&message), "{notes}");
    }
}

#[test]
fn quiet_leaves_the_outputs_to_the_command() {
    let (status, output, notes) = ended(start("echo out; echo err >&2", &["--quiet"], &[]));
    assert_eq!(
        (status, output.as_str(), notes.as_str()),
        (Some(0), "out\n", "err\n")
    );
}
