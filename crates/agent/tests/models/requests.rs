//! Requests to a server.

use plaincall_agent::model::{
    Anthropic, Json, Message, Model, ModelErrorKind, ModelRequest, OpenAi, Role,
};
use plaincall_testkit::model_server::{Asked, ModelServer, Script};
use serde_json::{Value, json};

use crate::models::received::{Received, ask, question};

/// The parts of a request that a server sees.
async fn sent<M: Model>(model: impl FnOnce(String) -> M, request: ModelRequest) -> Asked {
    let server = ModelServer::start(vec![Script::json(500, &Value::Null)]).await;
    Received::all(model(server.url()).reply(request)).await;
    let mut requests = server.seen().requests;
    assert_eq!(requests.len(), 1);
    requests.remove(0)
}

fn with_tokens(tokens: u32) -> ModelRequest {
    let mut request = question();
    request.max_tokens = Some(tokens);
    request
}

/// Changes settings.
type Set = fn(OpenAi) -> OpenAi;

#[tokio::test]
async fn chat_completions() {
    let asked = sent(|url| OpenAi::new(url, "m").key("sk-Ü12345678"), question()).await;
    let first = "post /v1/chat/completions http/1.1\r\n";
    assert!(asked.head.starts_with(first), "{}", asked.head);
    for header in [
        "content-type: application/json\r\n",
        "accept: text/event-stream, application/json\r\n",
        "accept-encoding: identity\r\n",
        "user-agent: plaincall/",
    ] {
        assert!(asked.head.contains(header), "{}", asked.head);
    }
    let messages = json!([
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "Hi."}
    ]);
    let usual = json!({
        "model": "m", "messages": messages, "stream": true,
        "stream_options": {"include_usage": true},
    });
    assert_eq!(asked.json(), usual);
    assert!(
        !sent(|url| OpenAi::new(url, "m"), question())
            .await
            .head
            .contains("authorization")
    );

    let table: [(Set, ModelRequest, Value); 5] = [
        (
            |model| model.max_tokens(7),
            question(),
            json!({"max_tokens": 7}),
        ),
        (
            |model| model.max_tokens(7),
            with_tokens(9),
            json!({"max_tokens": 9}),
        ),
        (
            |model| model.temperature(1.0).temperature(0.25),
            question(),
            json!({"temperature": 0.25}),
        ),
        (
            |model| {
                let options = Json::new(&json!({"include_usage": false}));
                model
                    .field("stream_options", options)
                    .field("seed", Json::new(&u64::MAX))
            },
            question(),
            json!({"stream_options": {"include_usage": false}, "seed": u64::MAX}),
        ),
        (
            |model| {
                let none = || Json::new(&Value::Null);
                model
                    .field("stream_options", none())
                    .field("max_tokens", none())
                    .max_tokens(7)
            },
            question(),
            json!({"stream_options": null}),
        ),
    ];
    for (set, request, other) in table {
        let asked = sent(|url| set(OpenAi::new(url, "m")), request).await;
        let mut expected = usual.clone();
        for (name, value) in other.as_object().expect("an object") {
            expected[name] = value.clone();
        }
        let fields = expected.as_object_mut().expect("an object");
        fields.retain(|_, value| !value.is_null());
        assert_eq!(asked.json(), expected);
    }
}

#[tokio::test]
async fn keys_and_headers() {
    let asked = sent(
        |url| {
            OpenAi::new(url, "m")
                .key("sk-12345678")
                .header("X-Team", "seven")
        },
        question(),
    );
    let head = asked.await.head;
    assert!(
        head.contains("authorization: bearer sk-12345678\r\n"),
        "{head}"
    );
    assert!(head.contains("x-team: seven\r\n"), "{head}");
    // Another scheme instead.
    let asked = sent(
        |url| {
            OpenAi::new(url, "m")
                .key("sk-12345678")
                .header("Authorization", "Basic abc")
        },
        question(),
    );
    let head = asked.await.head;
    assert!(
        head.contains("authorization: basic abc\r\n") && !head.contains("sk-"),
        "{head}"
    );
    let asked = sent(|url| Anthropic::at(url, "m").key("sk-12345678"), question());
    let head = asked.await.head;
    assert!(head.starts_with("post /v1/messages http/1.1\r\n"), "{head}");
    assert!(head.contains("x-api-key: sk-12345678\r\n"), "{head}");
    assert!(head.contains("anthropic-version: 2023-06-01\r\n"), "{head}");
    let asked = sent(
        |url| Anthropic::at(url, "m").header("Anthropic-Version", "2099-01-01"),
        question(),
    );
    let head = asked.await.head;
    assert!(head.contains("anthropic-version: 2099-01-01\r\n"), "{head}");
    assert!(
        !head.contains("2023-06-01") && !head.contains("x-api-key"),
        "{head}"
    );
    // The query after `?` stays.
    let asked = sent(
        |url| OpenAi::new(format!("{url}/?api-version=7"), "m"),
        question(),
    );
    let head = asked.await.head;
    assert!(
        head.starts_with("post /v1/chat/completions?api-version=7 http/1.1"),
        "{head}"
    );
}

#[tokio::test]
async fn messages_are_arranged() {
    use Role::{Assistant, System, User};
    let kept = json!({"type": "ephemeral"});
    let text = |text: &str| json!({"type": "text", "text": text});
    let last = |text: &str| json!({"type": "text", "text": text, "cache_control": kept});
    let message = |role: &str, content: Value| json!({"role": role, "content": content});
    for (messages, system, turns) in [
        (
            vec![(System, "Be brief."), (User, "Hi.")],
            json!([last("Be brief.")]),
            json!([message("user", json!([last("Hi.")]))]),
        ),
        (
            // Several messages of one role become one.
            vec![
                (System, "a"),
                (System, "b"),
                (User, "c"),
                (User, "d\n"),
                (Assistant, "e \n"),
                (User, "f"),
            ],
            json!([text("a"), last("b")]),
            json!([
                message("user", json!([text("c"), text("d\n")])),
                message("assistant", json!([text("e \n")])),
                message("user", json!([last("f")])),
            ]),
        ),
        (
            // Blank ones are omitted, and those around them become adjacent.
            vec![
                (System, " "),
                (User, "a"),
                (Assistant, "\n"),
                (User, "b"),
                (System, "c"),
                (User, ""),
            ],
            Value::Null,
            json!([message("user", json!([text("a"), text("b"), last("c")]))]),
        ),
        (
            // The model continues its own text.
            vec![(User, "a"), (Assistant, "b \n "), (User, " ")],
            Value::Null,
            json!([
                message("user", json!([text("a")])),
                message("assistant", json!([last("b")]))
            ]),
        ),
        (vec![], Value::Null, json!([])),
    ] {
        let messages = messages
            .into_iter()
            .map(|(role, text)| Message::new(role, text));
        let request = ModelRequest::new(messages.collect::<Vec<_>>());
        let asked = sent(|url| Anthropic::at(url, "m"), request).await;
        let mut expected = json!({
            "model": "m", "max_tokens": 8192, "messages": turns, "stream": true, "system": system,
        });
        if system.is_null() {
            expected
                .as_object_mut()
                .expect("an object")
                .remove("system");
        }
        assert_eq!(asked.json(), expected);
    }
    let thinks = Json::new(&json!({"type": "enabled", "budget_tokens": 2000}));
    let model = |url| {
        Anthropic::at(url, "m")
            .max_tokens(3000)
            .field("thinking", thinks.clone())
    };
    let body = sent(model, question()).await.json();
    assert_eq!(
        (&body["max_tokens"], &body["thinking"]["budget_tokens"]),
        (&json!(3000), &json!(2000))
    );
    assert_eq!(sent(model, with_tokens(9)).await.json()["max_tokens"], 9);
}

#[tokio::test]
async fn settings_that_cannot_work() {
    let url = "http://localhost:1/v1";
    for (model, expected) in [
        (
            OpenAi::new("localhost:1/v1", "m"),
            "did you mean http://localhost:1/v1?",
        ),
        (OpenAi::new(url, "m").key(" "), "the key is empty"),
        (
            OpenAi::new(url, "m").key("sk-1234\n5678"),
            "invalid in a header",
        ),
        (
            OpenAi::new(url, "m").header("x y", "12345678"),
            "the header `x y`",
        ),
        (
            OpenAi::new(url, "m").field("tools", Json::new(&json!([]))),
            "the request field `tools`",
        ),
        (
            OpenAi::new(url, "m").field("stream", Json::new(&false)),
            "the request field `stream`",
        ),
    ] {
        let error = model.check().expect_err(expected);
        assert_eq!(error.kind, ModelErrorKind::Refused);
        assert!(error.message.contains(expected), "{error}");
        assert!(!error.message.contains("5678"), "{error}");
        assert_eq!(ask(&model).await.error(), &error);
    }
    let model = OpenAi::new(url, "m")
        .key("sk-12345678")
        .header("x-secret", "abcdefgh");
    let shown = format!("{model:?} {:?}", Anthropic::at(url, "m").key("sk-12345678"));
    assert!(model.check().is_ok());
    let shown = format!("{shown} {model:?}");
    assert!(
        !shown.contains("1234") && !shown.contains("abcd"),
        "{shown}"
    );
}
