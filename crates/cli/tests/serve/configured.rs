//! The configuration of the gateway: its errors, the models that are served, and variables.

use std::fs;

use serde_json::Value;

use super::{EXAMPLE, Serving, answer, configuration, plaincall, refused, repeating, replies};

#[test]
fn errors_of_the_configuration() {
    for (text, place, words) in [
        (
            "[models.a]\nsyntx = 1\n",
            "config.toml:2:1",
            "did you mean `syntax`?",
        ),
        (
            "[models.'*']\nstart_prefix = '!'",
            "config.toml:1:9",
            "too short",
        ),
        (
            "[serve]\nmax_body = '1k'",
            "config.toml:2:12",
            "a size above 0: bytes",
        ),
        (
            "[serve]\nkeyed = true",
            "config.toml:2:1",
            "it belongs in a table `[models.NAME]`",
        ),
        (
            "[serve]\ncors = ['https://a/']\n[models.a]\nurl = 'http://a/v1'",
            "config.toml:2:9",
            "did you mean https://a?",
        ),
        (
            "[serve]\nmodels = ['a', 'b*']\n[models.a]\n[models.c]",
            "config.toml:2:16",
            "`b*` matches no table `[models.NAME]`; the models are `a`, `c`",
        ),
        (
            "[models.a]\nurl = 'http://a'\nkey_env = 'UNSET'",
            "config.toml:3:1",
            "the environment variable `UNSET` is not set",
        ),
        (
            "[models.a]\nurl = 'http://a'\nheaders = {b = 'c ${UNSET}'}",
            "config.toml:3:16",
            "`UNSET` is not set",
        ),
    ] {
        let (_folder, file) = configuration(text);
        let (message, status) = refused(&["--listen", "127.0.0.1:0", "--config", &file]);
        assert!(message.contains(words), "{words}: {message}");
        assert!(message.contains(place), "{place}: {message}");
        assert_eq!(status, Some(2), "{message}");
    }
}

/// Other models of the same file need neither keys nor valid variables.
#[test]
fn only_the_models_of_a_list_are_served() {
    let url = repeating();
    let text = format!(
        "[serve]\nmodels = ['small-*']\n[models.small-one]\nurl = '{url}'\n\
         [models.other]\nurl = '{url}'\nkey_env = 'UNSET'\n"
    );
    let (_folder, file) = configuration(&text);
    let serving = Serving::of(plaincall().args(["--listen", "127.0.0.1:0", "--config", &file]));
    assert_eq!(serving.status("", "small-one").0, "HTTP/1.1 200 OK");
    assert_eq!(serving.status("", "other").0, "HTTP/1.1 404 Not Found");
    serving.end();
}

/// The server of the option replaces those of the configuration.
#[test]
fn an_upstream_gets_the_requests_for_all_models() {
    let (_folder, serving) = Serving::configured(
        "[serve]\nmax_requests = 7\n[models.a]\nurl = 'http://127.0.0.1:1/v1'\nkey_env = 'UNSET'",
    );
    assert_eq!(serving.post("", "request.json").0, "HTTP/1.1 200 OK");
    assert_eq!(serving.status("", "a").0, "HTTP/1.1 200 OK");
    serving.end();
}

#[test]
fn variables_set_keys_of_the_configuration() {
    let folder = tempfile::tempdir().unwrap();
    let variables = [
        ("PLAINCALL_SERVE_LISTEN", "0.0.0.0:0"),
        ("PLAINCALL_SERVE_OPEN", "true"),
        ("PLAINCALL_SERVE_MAX_REQUESTS", "3"),
    ];
    let mut command = plaincall();
    command.args(["--upstream", &replies()]).envs(variables);
    let serving = Serving::of(command.current_dir(folder.path()));
    assert!(
        serving.address.starts_with("0.0.0.0:"),
        "{}",
        serving.address
    );
    serving.end();
    command.env("PLAINCALL_SERVE_OPEN", "maybe");
    let output = command.output().unwrap();
    let message = String::from_utf8(output.stderr).unwrap();
    assert!(message.contains("PLAINCALL_SERVE_OPEN: "), "{message}");
    assert_eq!(output.status.code(), Some(2));
}

/// With `--upstream`, the option teaches all models, also those with a table.
#[test]
fn a_dialect_is_taught() {
    let call = r#""\ud83d\udee0\ufe0f[get_weather Paris]\n\ud83d\udee0\ufe0f[/end]""#;
    let (folder, file) = configuration("[models.a]\nrepair_rounds = 0\n");
    let replies = folder.path().join("replies.jsonl");
    fs::write(&replies, format!("{call}\n")).unwrap();
    let upstream = format!("replay:{}", replies.display());
    for (options, is_call) in [(&["--dialect", "emoji"][..], true), (&[], false)] {
        let options = [options, &["--config", &file]].concat();
        let serving = Serving::start(&upstream, &options, &[]);
        let request = fs::read_to_string(format!("{EXAMPLE}/request.json")).unwrap();
        let mut request: Value = serde_json::from_str(&request).unwrap();
        request["stream"] = false.into();
        for model in ["a", "b"] {
            request["model"] = model.into();
            let body = request.to_string();
            let (status, body) = answer(serving.ask("POST /v1/chat/completions", "", &body));
            assert_eq!(status, "HTTP/1.1 200 OK", "{body}");
            assert_eq!(
                body.contains(r#""tool_calls":"#),
                is_call,
                "{model}: {body}"
            );
        }
    }
}
