//! SIGHUP, and several model servers.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;
use std::thread;

use rustix::process::Signal;
use serde_json::Value;

use crate::serve::{EXAMPLE, Serving, answer, configuration, plaincall, repeating, replies};

/// A server that sends the first half of a stream, and the second after a signal of the test. Returns its base URL.
fn halting() -> (String, mpsc::Receiver<String>, mpsc::Sender<()>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (sender, heads) = mpsc::channel();
    let (go, may_go) = mpsc::channel();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let mut reader = BufReader::new(stream);
            let mut head = String::new();
            while !head.ends_with("\r\n\r\n") {
                if reader.read_line(&mut head).unwrap() == 0 {
                    break;
                }
            }
            let stream = reader.get_mut();
            if head.starts_with("GET") {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 21\r\nconnection: close\r\ncontent-type: application/json\r\n\r\n{\"data\":[{\"id\":\"x1\"}]}");
                continue;
            }
            let chunk = |text: &str| {
                format!(
                    "data: {{\"choices\":[{{\"index\":0,\"delta\":{{\"content\":\"{text}\"}}}}]}}\n\n"
                )
            };
            let begin =
                "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
            stream
                .write_all((begin.to_owned() + &chunk("one")).as_bytes())
                .unwrap();
            sender.send(head).unwrap();
            may_go.recv().unwrap();
            let end = "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
            stream.write_all((chunk("two") + end).as_bytes()).unwrap();
        }
    });
    (url, heads, go)
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).unwrap();
    path.to_str().unwrap().to_owned()
}

impl Serving {
    /// Reads notes up to one with these words, and returns them.
    pub(super) fn until_note(&mut self, words: &str) -> String {
        let mut notes = String::new();
        while !notes.contains(words) {
            assert!(self.notes.read_line(&mut notes).unwrap() > 0, "{notes}");
        }
        notes
    }

    pub(super) fn status(&self, key: &str, model: &str) -> (String, String) {
        let headers = format!("authorization: Bearer {key}\r\n");
        let body = format!(r#"{{"model":"{model}","messages":[{{"role":"user","content":"a"}}]}}"#);
        answer(self.ask("POST /v1/chat/completions", &headers, &body))
    }
}

#[test]
fn a_hangup_reloads_models_and_keys_and_drops_no_stream() {
    let folder = tempfile::tempdir().unwrap();
    let (url, heads, go) = halting();
    let file = |name: &str, text: &str| write(folder.path(), name, text);
    file("server.key", "sk-of-the-server\n");
    let others =
        format!("[serve]\nkeys_file = 'keys'\n[models.'*']\nreplay = '{EXAMPLE}/replies.jsonl'\n");
    let slow = format!("{others}[models.'x*']\nurl = '{url}'\nkey_file = 'server.key'\n");
    let configuration = file("config.toml", &slow);
    file("keys", "old-key-00000000\n");
    let options = ["--listen", "127.0.0.1:0", "--config", &configuration];
    let mut serving = Serving::of(plaincall().args(options));

    let headers = "authorization: Bearer old-key-00000000\r\n";
    let body = r#"{"model":"x1","stream":true,"messages":[{"role":"user","content":"a"}]}"#;
    let mut stream = serving.ask("POST /v1/chat/completions", headers, body);
    let head = heads.recv().unwrap().to_lowercase();
    assert!(
        head.contains("authorization: bearer sk-of-the-server\r\n"),
        "{head}"
    );

    // The server of the stream is gone, and its key.
    file("config.toml", &others);
    file("keys", "new-key-00000000\n");
    serving.signal(Signal::HUP);
    serving.until_note("settings reloaded");
    assert_eq!(
        serving.status("old-key-00000000", "a").0,
        "HTTP/1.1 401 Unauthorized"
    );
    assert_eq!(
        serving.status("new-key-00000000", "x1").0,
        "HTTP/1.1 200 OK"
    );

    // Each of these is rejected as a whole.
    let missing = slow.replace("server.key", "missing.key");
    for (text, keys, words) in [
        (
            "[models.y]\nsyntx = 'emoji'\n",
            "newer-key-000000\n",
            "config.toml:2:1",
        ),
        (
            "[models.y]\nkeyed = \n",
            "newer-key-000000\n",
            "config.toml:2:9",
        ),
        (
            "[serve]\nmodels = ['z']\n[models.y]\nkeyed = true\n",
            "newer-key-000000\n",
            "config.toml:2:11",
        ),
        (&missing, "newer-key-000000\n", "missing.key"),
        (&others, "\n", "keys has no key"),
    ] {
        file("config.toml", text);
        file("keys", keys);
        serving.signal(Signal::HUP);
        let notes = serving.until_note("the old settings stay in use");
        assert!(notes.contains(words), "{notes}");
        assert_eq!(
            serving.status("newer-key-000000", "a").0,
            "HTTP/1.1 401 Unauthorized"
        );
        assert_eq!(serving.status("new-key-00000000", "a").0, "HTTP/1.1 200 OK");
    }

    // Limits stay until a restart.
    let limited = others.replace("[models", "max_requests = 1\n[models");
    file("config.toml", &limited);
    file("keys", "new-key-00000000\n");
    serving.signal(Signal::HUP);
    let notes = serving.until_note("take effect when the gateway is restarted");
    assert!(notes.contains("some changes of `[serve]`"), "{notes}");

    go.send(()).unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    assert!(
        text.contains("one") && text.contains("two") && text.contains("[DONE]"),
        "{text}"
    );
    let lines = serving.end();
    let line = lines
        .iter()
        .find(|line| line.contains(&format!("\"x1\",\"upstream\":\"{url}\"")));
    let line: Value = serde_json::from_str(line.unwrap()).unwrap();
    assert_eq!(
        (&line["upstream"], &line["status"]),
        (&url.into(), &200.into())
    );
}

#[test]
fn several_servers_without_a_default() {
    let other = Serving::start(&replies(), &[], &[]);
    let text = format!(
        "[models.fast]\nurl = 'http://{}/v1'\nmodel = 'replay'\nheaders = {{x-team = '${{TEAM}}'}}\n",
        other.address
    );
    let (_folder, file) = configuration(&text);
    let options = ["--listen", "127.0.0.1:0", "--config", &file];
    let serving = Serving::of(plaincall().args(options).env("TEAM", "blue"));
    let (_, list) = answer(serving.ask("GET /v1/models", "", ""));
    assert!(
        list.contains(r#""id":"fast""#) && !list.contains("replay\",\"obj"),
        "{list}"
    );
    assert_eq!(serving.status("", "fast").0, "HTTP/1.1 200 OK");
    let (status, body) = serving.status("", "slow");
    assert_eq!(status, "HTTP/1.1 404 Not Found");
    assert!(body.contains("model_not_found"), "{body}");
    serving.end();
    let lines = other.end();
    assert!(
        lines
            .iter()
            .any(|line| line.contains(r#""model":"replay""#)),
        "{lines:?}"
    );
}

#[test]
fn values_of_variables_in_headers_are_redacted() {
    let url = repeating();
    let text = format!(
        "[models.a]\nurl = '{url}'\nheaders = {{x-team = 'team ${{TEAM}}', x-plain = 'in the file'}}\n"
    );
    let (_folder, file) = configuration(&text);
    let options = ["--listen", "127.0.0.1:0", "--config", &file];
    let serving = Serving::of(plaincall().args(options).env("TEAM", "blue-and-secret"));
    let (status, body) = serving.status("", "a");
    assert_eq!(status, "HTTP/1.1 200 OK");
    assert!(body.contains("x-team: team [key]"), "{body}");
    assert!(body.contains("x-plain: in the file"), "{body}");
    assert!(!body.contains("blue-and-secret"), "{body}");
}

/// Models with measured defaults are not listed because a pattern fits their names.
#[test]
fn only_names_of_the_file_are_listed() {
    let text = "[models.'*']\nmodel = 'replay'\n[models.mine]\nmodel = 'replay'\n";
    let (_folder, serving) = Serving::configured(text);
    let (_, list) = answer(serving.ask("GET /v1/models", "", ""));
    let list: Value = serde_json::from_str(&list).unwrap();
    let models = list["data"].as_array().unwrap().iter();
    let ids: Vec<&Value> = models.map(|model| &model["id"]).collect();
    assert_eq!(ids, ["mine", "replay"]);
}

/// The secret stays until a restart, so its file is not needed to replace keys.
#[test]
fn keys_are_replaced_without_the_file_of_the_secret() {
    let (folder, file) = configuration("[serve]\nsecret_file = 'secret'\nkeys_file = 'keys'\n");
    let secret = write(folder.path(), "secret", "0123456789abcdef");
    write(folder.path(), "keys", "old-key-00000000\n");
    let options = ["--config", &file];
    let mut serving = Serving::start(&replies(), &options, &[]);
    fs::remove_file(&secret).unwrap();
    write(folder.path(), "keys", "new-key-00000000\n");
    serving.signal(Signal::HUP);
    let notes = serving.until_note("settings");
    assert!(notes.contains("settings reloaded"), "{notes}");
    assert_eq!(serving.status("new-key-00000000", "a").0, "HTTP/1.1 200 OK");
}
